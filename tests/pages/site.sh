#!/bin/sh
# site.sh SOURCE - the site can be built: every page is in it, links hold, nothing is loaded from elsewhere
# (scripts/site.sh); and its search finds pages, in a browser.
set -eu
cd "$1"
command -v mkdocs >/dev/null || {
    echo 'skipped: no mkdocs here (Debian: mkdocs)'
    exit 77
}
dir=$(mktemp -d "${TMPDIR:-/tmp}/cohort-site-XXXXXX")
trap 'rm -rf "$dir"' EXIT
scripts/site.sh "$dir/site"
for name in chromium chromium-browser google-chrome; do
    browser=$(command -v "$name") && break
done
[ -n "$browser" ] || {
    echo 'no Chromium here (Debian: chromium): search not tried'
    exit 0
}
python3 tests/pages/search.py "$dir" "$browser" powersgd docs/strategies.html
python3 tests/pages/search.py "$dir" "$browser" DistributedSampler docs/coming-from.html
python3 tests/pages/search.py "$dir" "$browser" nothinghasthisword ''
