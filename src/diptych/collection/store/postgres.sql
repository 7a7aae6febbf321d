-- The word index of PostgreSQL. Columns have a place between them, so that no phrase reaches from one into the next.
CREATE FUNCTION said_words(texts text[]) RETURNS tsvector LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(string_agg(quote_literal(token) || ':' || place, ' '), '')::tsvector
    FROM unnest(string_to_array(array_to_string(texts, '  '), ' ')) WITH ORDINALITY AS said (token, place)
    WHERE token <> ''
$$;
ALTER TABLE said ADD COLUMN words tsvector
    GENERATED ALWAYS AS (said_words(ARRAY[name, label, field, picture, caption_words])) STORED;
CREATE INDEX said_words_index ON said USING gin (words) WITH (fastupdate = off);
