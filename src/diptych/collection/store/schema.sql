-- One schema for both engines. The dialect replaces the words in braces: {id} is a growing integer key, {int} a 64-bit
-- integer, {real} a double, {blob} bytes, {text} text that is ordered by code point, {strict} strict types.
-- Truth values are 0 or 1, JSON is text, times are nanoseconds since 1970.

-- Settings by name: format, uuid, root, facts, counts.
CREATE TABLE meta (name {text} PRIMARY KEY, value {text} NOT NULL) {strict};

-- What points, features and thumbnails belong to: SHA-256 of a picture (kind 0) or of a text (kind 1).
CREATE TABLE content (
    id {id},
    hash {blob} NOT NULL UNIQUE,
    kind {int} NOT NULL
) {strict};

CREATE TABLE item (
    id {id},
    name {text} NOT NULL UNIQUE,
    path {text} UNIQUE,
    path_folded {text} NOT NULL DEFAULT '',
    file_folded {text} NOT NULL DEFAULT '',
    content {int} REFERENCES content,
    size {int} NOT NULL DEFAULT 0,
    mtime_ns {int} NOT NULL DEFAULT 0,
    width {int} NOT NULL DEFAULT 0,
    height {int} NOT NULL DEFAULT 0,
    added_ns {int} NOT NULL,
    updated_ns {int} NOT NULL,
    taken {text} NOT NULL DEFAULT '',
    latitude {real},
    longitude {real},
    labels {text} NOT NULL DEFAULT '[]',
    metadata {text} NOT NULL DEFAULT '{}',
    facts {text} NOT NULL DEFAULT '{}',
    facts_read {text} NOT NULL DEFAULT '',
    crc {int} NOT NULL
) {strict};
CREATE INDEX item_content ON item (content);
CREATE INDEX item_taken ON item (taken, id);
CREATE INDEX item_path ON item (path_folded, id);
CREATE INDEX item_updated ON item (updated_ns, id);
CREATE INDEX item_place ON item (latitude, longitude) WHERE latitude IS NOT NULL;

CREATE TABLE caption (
    id {id},
    name {text} NOT NULL UNIQUE,
    item {int} NOT NULL REFERENCES item ON DELETE CASCADE,
    place {int} NOT NULL,
    text {text} NOT NULL,
    folded {text} NOT NULL,
    content {int} NOT NULL REFERENCES content,
    crc {int} NOT NULL
) {strict};
CREATE INDEX caption_item ON caption (item, place);
CREATE INDEX caption_content ON caption (content);

-- Distinct values of labels, metadata and facts. Kind: 0 text, 1 number, 2 truth, 3 other. Key: 64 bits of the hash of
-- field, kind and text, which may be longer than an index allows.
CREATE TABLE value (
    id {id},
    field {text} NOT NULL,
    kind {int} NOT NULL,
    text {text} NOT NULL,
    folded {text} NOT NULL,
    number {real},
    key {int} NOT NULL
) {strict};
CREATE INDEX value_key ON value (key);
CREATE INDEX value_field ON value (field, id);
-- Values are deleted only by pruning those that no row has, so that rows need no check that theirs is there.
CREATE TABLE item_value (
    value {int} NOT NULL,
    item {int} NOT NULL REFERENCES item ON DELETE CASCADE,
    PRIMARY KEY (value, item)
) {clustered};
CREATE INDEX item_value_item ON item_value (item, value);

-- What is found by words, as tokens joined by blanks. Kind 0 is an item, kind 1 one of its captions. The rows of an item
-- are written together.
CREATE TABLE said (
    id {id},
    item {int} NOT NULL REFERENCES item ON DELETE CASCADE,
    kind {int} NOT NULL,
    caption {int},
    name {text} NOT NULL DEFAULT '',
    label {text} NOT NULL DEFAULT '',
    field {text} NOT NULL DEFAULT '',
    picture {text} NOT NULL DEFAULT '',
    caption_words {text} NOT NULL DEFAULT ''
) {strict};
CREATE INDEX said_item ON said (item);

CREATE TABLE thumbnail (content {int} PRIMARY KEY REFERENCES content ON DELETE CASCADE, jpeg {blob} NOT NULL, crc {int} NOT NULL) {strict};

-- Words: a JSON list of the words; boxes: eight float32 for each.
CREATE TABLE picture_text (
    content {int} PRIMARY KEY REFERENCES content ON DELETE CASCADE,
    text {text} NOT NULL,
    words {text} NOT NULL,
    boxes {blob} NOT NULL,
    crc {int} NOT NULL
) {strict};

CREATE TABLE encoder (
    id {id},
    fingerprint {text} NOT NULL,
    side {text} NOT NULL,
    width {int} NOT NULL,
    UNIQUE (fingerprint, side)
) {strict};
-- Features are float32, as the encoder made them.
CREATE TABLE feature (
    encoder {int} NOT NULL REFERENCES encoder ON DELETE CASCADE,
    content {int} NOT NULL REFERENCES content ON DELETE CASCADE,
    v {blob} NOT NULL,
    crc {int} NOT NULL,
    PRIMARY KEY (encoder, content)
) {strict};
CREATE INDEX feature_content ON feature (content);

-- Search models. State: active, kept (searched by name), resting (kept for the way back, without points of new items),
-- unfinished (beside the others, its points are being made), pending (becomes active when its points are made, and is not
-- listed before). Place orders them. Form: f16 or bits.
CREATE TABLE model (
    id {id},
    name {text} NOT NULL,
    fingerprint {text} NOT NULL UNIQUE,
    image_fingerprint {text} NOT NULL,
    text_fingerprint {text} NOT NULL,
    kind {text} NOT NULL DEFAULT '',
    width {int} NOT NULL DEFAULT 0,
    form {text} NOT NULL DEFAULT '',
    state {text} NOT NULL,
    place {int} NOT NULL DEFAULT 0,
    has_regions {int} NOT NULL DEFAULT 0,
    saved {text} NOT NULL,
    note {text} NOT NULL DEFAULT '{}'
) {strict};
CREATE UNIQUE INDEX model_active ON model (state) WHERE state = 'active';
-- The files of a saved model: it travels with the database.
CREATE TABLE model_file (
    model {int} NOT NULL REFERENCES model ON DELETE CASCADE,
    name {text} NOT NULL,
    body {blob} NOT NULL,
    sha256 {text} NOT NULL,
    PRIMARY KEY (model, name)
) {strict};
CREATE TABLE model_history (id {id}, record {text} NOT NULL) {strict};

CREATE TABLE album (id {id}, title {text} NOT NULL, folded {text} NOT NULL UNIQUE) {strict};
CREATE TABLE album_item (
    album {int} NOT NULL REFERENCES album ON DELETE CASCADE,
    item {int} NOT NULL REFERENCES item ON DELETE CASCADE,
    place {int} NOT NULL,
    PRIMARY KEY (album, item)
) {strict};
CREATE INDEX album_item_place ON album_item (album, place, item);
CREATE INDEX album_item_item ON album_item (item);
CREATE TABLE saved_search (id {id}, name {text} NOT NULL, folded {text} NOT NULL UNIQUE, document {text} NOT NULL) {strict};

-- One row for each changed item, or for one thing that is no item; readers follow it by id.
-- Kind: item (added, changed or removed), model, album, saved_search, text, settings.
CREATE TABLE change (
    id {id},
    kind {text} NOT NULL,
    item {int}
) {strict};
-- Files that the last run could not read.
CREATE TABLE unread (path {text} PRIMARY KEY, reason {text} NOT NULL) {strict};

-- The click log: what was asked, shown and clicked. Times are seconds since 1970; name is the id that clients know. A page
-- is a run of results at consecutive positions, so that a search costs one row and not one for each result; items is a
-- JSON list. A draft says of each result of a page which of two interleaved models it came from, one letter each.
CREATE TABLE query (id {id}, text {text} NOT NULL UNIQUE) {strict};
CREATE TABLE search (
    id {id},
    name {text} NOT NULL UNIQUE,
    time {real} NOT NULL,
    query {int} NOT NULL REFERENCES query,
    terms {text},
    plain {int} NOT NULL,
    target {text} NOT NULL,
    model {text} NOT NULL,
    fingerprint {text} NOT NULL,
    no_good_match {int} NOT NULL,
    best_probability {real},
    clicked {int} NOT NULL DEFAULT 0,
    visitor {text}
) {strict};
CREATE INDEX search_time ON search (time, query, no_good_match, clicked);
CREATE INDEX search_query ON search (query);
CREATE TABLE page (
    search {int} NOT NULL REFERENCES search ON DELETE CASCADE,
    first {int} NOT NULL,
    length {int} NOT NULL,
    time {real} NOT NULL,
    items {text} NOT NULL,
    PRIMARY KEY (search, first, length)
) {strict};
CREATE INDEX page_time ON page (time, first, length);
CREATE TABLE click (
    id {id},
    search {int} NOT NULL REFERENCES search ON DELETE CASCADE,
    item {text} NOT NULL,
    position {int} NOT NULL,
    caption {text},
    kind {text} NOT NULL,
    time {real} NOT NULL
) {strict};
CREATE INDEX click_search ON click (search, position, item, kind);
CREATE INDEX click_time ON click (time, kind, position, search);
CREATE TABLE interleaving (
    id {id},
    a {text} NOT NULL,
    a_fingerprint {text} NOT NULL,
    b {text} NOT NULL,
    b_fingerprint {text} NOT NULL,
    started {real} NOT NULL,
    stopped {real}
) {strict};
CREATE TABLE draft (
    search {int} NOT NULL REFERENCES search ON DELETE CASCADE,
    first {int} NOT NULL,
    length {int} NOT NULL,
    interleaving {int} NOT NULL,
    teams {text} NOT NULL,
    PRIMARY KEY (search, first, length)
) {strict};
CREATE INDEX draft_interleaving ON draft (interleaving, search);
-- The key of the numbers of visitors in each period of thirty days; the one before is deleted.
CREATE TABLE visitor_salt (period {int} PRIMARY KEY, salt {text} NOT NULL) {strict};
-- Reports of rehearsals; they quote queries and are deleted with them.
CREATE TABLE rehearsal (fingerprint {text} PRIMARY KEY, made {text} NOT NULL, report {text} NOT NULL) {strict};

-- Long work of the service. State: waiting, running, done, failed, cancelled, interrupted. Times but beat_ns are ISO 8601.
CREATE TABLE job (
    id {id},
    name {text} NOT NULL UNIQUE,
    kind {text} NOT NULL,
    parameters {text} NOT NULL,
    state {text} NOT NULL,
    done {int} NOT NULL DEFAULT 0,
    total {int} NOT NULL DEFAULT 0,
    message {text} NOT NULL DEFAULT '',
    error {text},
    result {text},
    created {text} NOT NULL,
    started {text},
    finished {text},
    beat_ns {int} NOT NULL DEFAULT 0,
    to_cancel {int} NOT NULL DEFAULT 0
) {strict};
CREATE INDEX job_state ON job (state, id);
