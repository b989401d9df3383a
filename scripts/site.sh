#!/bin/sh
# site.sh [FOLDER] - README, docs and the like as a site in FOLDER (build/site), by MkDocs. Ends with an error where
# a link leads nowhere, or where a page would load anything from elsewhere.
set -eu
cd "$(dirname "$0")/.."
pages=build/site-pages site=${1:-build/site}
case $site in /*) ;; *) site=$PWD/$site ;; esac

# Laid out as in the source tree, so that links hold.
rm -rf "$pages" "$site"
mkdir -p "$pages/docs" "$pages/include/cohort"
cp README.md CONTRIBUTING.md CHANGELOG.md LICENSE docs/site.css "$pages"
cp docs/*.md "$pages/docs"
cp include/cohort/*.h "$pages/include/cohort"
cp -R examples configs "$pages"
mkdocs build --quiet --strict --config-file docs/mkdocs.yml --site-dir "$site"
python3 scripts/check_site.py "$site"
