#!/bin/sh
# data.sh - how fast images come: decoded and augmented, beside libjpeg-turbo's own decoder; packed,
# beside the folder; and whether memory stays what it is.
#
# Uses Imagenette as JPEG files of 224x224 below $COHORT_DATA/imagenette (../shared/data beside the
# source tree). Rounds alternate, so that all see the same machine; figures are samples per second
# of processor time, medians over the rounds. The page cache holds the files.
#
#   ROUNDS=5                what it says
#   COHORT=build/cohort     the program
#
# Prints a table and writes bench/results/data.json.
set -eu
cd "$(dirname "$0")/.."
COHORT=${COHORT:-build/cohort}
ROUNDS=${ROUNDS:-5}
images=${COHORT_DATA:-../shared/data}/imagenette
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

fail()
{
    printf 'bench: error: %s\n' "$1" >&2
    exit 1
}

# field NAME: that number of every line of JSON objects on standard input.
field()
{
    sed -n "s/.*\"$1\": *\([-+.0-9e]*\).*/\1/p"
}

median()
{
    sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# What ImageNet is usually trained on: a random-resized crop and a flip, normalised.
recipe()
{
    echo "center_crop: $1, normalize: imagenet, augment: [random-resized-crop, horizontal-flip]"
}

# measure NAME DATA SIDE
measure()
{
    "$COHORT" bench data "{$2, $(recipe "$3")}" --threads 0 --rounds 1 |
        field samples_per_core_second >>"$dir/$1"
}

[ -x "$COHORT" ] || fail "$COHORT is not built; run: make"
[ -d "$images" ] || fail "$images: no such folder; set COHORT_DATA"
"$COHORT" data pack "{name: imagefolder, path: $images, resize: 224}" "$dir/files.pack" -q
for side in 256 72; do
    "$COHORT" data pack "{name: imagefolder, path: $images, resize: 224}" "$dir/$side.pack" \
        --decode $side -q
done
peer=
if ${CC:-cc} -O2 bench/peers/jpeg_decode.c -o "$dir/jpeg_decode" -lturbojpeg 2>/dev/null; then
    peer=yes
else
    echo "libjpeg-turbo's decoder is left out: bench/peers/jpeg_decode.c does not build" \
        "(Debian: libturbojpeg0-dev)"
fi

for round in $(seq "$ROUNDS"); do
    [ -z "$peer" ] || "$dir/jpeg_decode" "$images"/train/*/*.JPEG |
        field samples_per_core_second >>"$dir/peer"
    measure folder-224 "name: imagefolder, path: $images" 224
    measure files-224 "name: pack, path: $dir/files.pack" 224
    measure pixels-224 "name: pack, path: $dir/256.pack" 224
    measure folder-64 "name: imagefolder, path: $images" 64
    measure files-64 "name: pack, path: $dir/files.pack" 64
    measure pixels-64 "name: pack, path: $dir/72.pack" 64
    printf '\rround %s of %s' "$round" "$ROUNDS" >&2
done
printf '\r                    \r' >&2

# Resident memory over ten epochs, at the most compared with the first.
"$COHORT" bench data "{name: imagefolder, path: $images, $(recipe 224)}" --threads 2 --rounds 10 \
    >"$dir/memory"
first=$(field resident_bytes_first <"$dir/memory")
most=$(field resident_bytes_max <"$dir/memory")

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
value()
{
    if [ -f "$dir/$1" ]; then median <"$dir/$1"; else echo null; fi
}
ratio()
{
    echo "$1 $2" | awk '{ if ($1 == "null" || $2 == "null") print "null"; else printf "%.2f", $1 / $2 }'
}

mkdir -p bench/results
out=bench/results/data.json
{
    printf '{"bench": "data", "date": "%s", "commit": "%s", "cpu": "%s", "rounds": %s,\n' \
        "$(date -u +%Y-%m-%d)" "$commit" "${cpu:-unknown}" "$ROUNDS"
    printf ' "samples_per_core_second": {"libjpeg_turbo_decode": %s' "$(value peer)"
    for name in folder-224 files-224 pixels-224 folder-64 files-64 pixels-64; do
        printf ',\n  "%s": %s' "$name" "$(value $name)"
    done
    printf '},\n "ratios": {"folder-224 to libjpeg_turbo_decode": %s,\n' \
        "$(ratio "$(value folder-224)" "$(value peer)")"
    printf '  "files-224 to libjpeg_turbo_decode": %s,\n' \
        "$(ratio "$(value files-224)" "$(value peer)")"
    printf '  "pixels-224 to folder-224": %s,\n  "pixels-64 to folder-64": %s,\n' \
        "$(ratio "$(value pixels-224)" "$(value folder-224)")" \
        "$(ratio "$(value pixels-64)" "$(value folder-64)")"
    printf '  "resident memory, most of 10 epochs to the first": %s}}\n' \
        "$(echo "$most $first" | awk '{ printf "%.4f", $1 / $2 }')"
} >"$dir/out"
mv "$dir/out" $out

echo "images a second and core, random-resized crop, flip and normalisation; medians of $ROUNDS rounds"
echo "${cpu:-unknown CPU}"
printf '%-44s %10s %8s\n' '' 'images/s' ratio
printf '%-44s %10.0f\n' "libjpeg-turbo alone: decode 224x224" "$(value peer | sed s/null/0/)"
for side in 224 64; do
    for kind in folder files pixels; do
        against=peer
        [ $kind != pixels ] || against=folder-$side
        printf '%-44s %10.0f %8s  to %s\n' "$kind to ${side}x$side" "$(value $kind-$side)" \
            "$(ratio "$(value $kind-$side)" "$(value $against)")" "$against"
    done
done
printf '%-44s %10s %8s\n' "memory after 10 epochs, to the first" '' \
    "$(echo "$most $first" | awk '{ printf "%.4f", $1 / $2 }')"
echo "written: $out"
