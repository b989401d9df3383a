# shellcheck shell=sh
# browser.sh - a page in a real browser, headless. Sourced by checks, which then are in a folder of their own, $folder,
# that goes with them; ends the check as skipped where there is no Chromium.
browser=
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v "$name" || true)
done
[ -n "$browser" ] || {
    echo "skipped: no Chromium here (Debian: chromium)"
    exit 77
}
folder=$(mktemp -d "${TMPDIR:-/tmp}/cohort-page-XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP
cd "$folder" || exit 1

fail()
{
    echo "$1"
    exit 1
}

# write_net SAMPLES EPOCHS LOG_EVERY: net.yaml, a small network that is trained at once.
write_net()
{
    cat >net.yaml <<END
model: {name: mlp, hidden: [16]}
data: {name: synthetic, shape: [1, 8, 8], classes: 4, samples: $1}
batch: 32
epochs: $2
log_every: $3
END
}

# A browser reserves more addresses than tests of a build for ARM64 may have (scripts/arm64.sh).
browse()
(
    # shellcheck disable=SC3045 # dash and bash have it
    ulimit -S -v "$(ulimit -H -v)"
    exec "$browser" "$@"
)

# open_page FILE: its document, when its script has come to its end, to dom.html; nothing may be written to the console.
open_page()
{
    # The sandbox needs rights that containers and root lack.
    browse --headless --no-sandbox --disable-gpu --user-data-dir="$folder/profile" \
        --enable-logging=stderr --dump-dom "file://$folder/$1" >dom.html 2>log ||
        fail "the browser failed: $(tail -n 3 log)"
    if grep -i 'CONSOLE' log; then
        fail "the browser's console has messages"
    fi
    grep -q 'data-ready="[0-9]' dom.html || fail "the script has not come to its end"
}
