#!/bin/sh
# What the image does by itself: make a collection of /pictures, follow them, and serve the page.
#
#   docker run -v ~/Pictures:/pictures -p 8765:8765 diptych
#
# With arguments it is the program: docker run … diptych index /pictures --collection postgresql://…
set -eu
[ $# -eq 0 ] || exec diptych "$@"

pictures=${DIPTYCH_PICTURES:-/pictures}
home=${DIPTYCH_HOME:-/collection}
token=${DIPTYCH_TOKEN_FILE:-/run/secrets/diptych-token}
# The page can be reached by others, so it needs a token. The first start makes one where none is given.
if [ -z "${DIPTYCH_TOKEN:-}" ] && ! [ -r "$token" ]; then
    token=$home/token
    [ -s "$token" ] || (umask 077 && python -c 'import secrets; print(secrets.token_urlsafe(32))' > "$token")
    echo "Sign in on the page with this token: $(cat "$token")"
fi
[ -n "${DIPTYCH_TOKEN:-}" ] || set -- --token-file "$token"
# Empty at first: --watch brings in what is there while the page answers already.
python -c 'import sys; from diptych import Collection; Collection.open_or_create(sys.argv[1], root=sys.argv[2]).close()' \
    "$home/index" "$pictures"
exec diptych serve "$home/index" --root "$pictures" --watch --host 0.0.0.0 --port "${DIPTYCH_PORT:-8765}" "$@"
