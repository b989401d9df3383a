#!/bin/sh
# configs.sh COHORT SOURCE - the whole configs that README and docs show are ones that the program takes, with
# made-up images or tokens in the place of their data.
set -eu
cohort=$1
cd "$2"
dir=$(mktemp -d "${TMPDIR:-/tmp}/cohort-configs-XXXXXX")
trap 'rm -rf "$dir"' EXIT
awk -v dir="$dir" '
/^```yaml$/ { n++; inside = 1; text = ""; next }
/^```/ && inside {
    inside = 0
    if (text !~ /plugins:/ && text ~ /(^|\n)(model|layers):/ && text ~ /\ndata:/ && text ~ /\n(batch|epochs)/) {
        name = FILENAME
        gsub(/\//, "-", name)
        printf "%s", text > (dir "/" name "-" n ".yaml")
    }
    next
}
inside { text = text $0 "\n" }' README.md docs/*.md
count=0
for config in "$dir"/*.yaml; do
    data='{name: synthetic, shape: [3, 32, 32]}'
    ! grep -q '^data: .*context:' "$config" || data=synthetic-tokens
    "$cohort" inspect "$config" --set "data=$data" --set batch=8 --set batch_per_rank=0 >/dev/null ||
        { echo "$config:"; cat "$config"; exit 1; }
    count=$((count + 1))
done
echo "$count configs"
[ "$count" -ge 4 ]
