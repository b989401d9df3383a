#!/bin/sh
# completion.sh COHORT SOURCE - what bash would offer behind some lines.
set -eu
cohort=$1 source=$2
command -v bash >/dev/null || {
    echo "skipped: no bash"
    exit 77
}
folder=$(mktemp -d "${TMPDIR:-/tmp}/cohort-completion-XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir runs
: >mine.yaml
bash -s "$cohort" "$source" <<'END'
. "$2/scripts/completion.bash"
program=$1
failed=0

# offers WORD... -- CANDIDATE...: the last WORD is the one to complete
offers()
{
    local candidate found
    COMP_WORDS=(cohort)
    while [[ $1 != -- ]]; do
        COMP_WORDS+=("$1")
        shift
    done
    shift
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMP_WORDS[0]=$program
    _cohort "$program" 2>/dev/null
    for candidate in "$@"; do
        found=
        for word in "${COMPREPLY[@]}"; do
            [[ $word == "$candidate" ]] && found=1
        done
        if [[ -z $found ]]; then
            echo "cohort ${COMP_WORDS[*]:1}: offers not '$candidate' but: ${COMPREPLY[*]}"
            failed=1
        fi
    done
    if [[ $# == 0 && ${#COMPREPLY[@]} != 0 ]]; then
        echo "cohort ${COMP_WORDS[*]:1}: offers ${COMPREPLY[*]}"
        failed=1
    fi
}

offers tr -- train
offers bench "" -- train comm ops data
offers train --pro -- --profile --profile-steps
offers train fash -- fashion-mnist
offers train mi -- mine.yaml
offers train tutorial/a -- tutorial/a-sync
offers inspect ru -- runs
offers list opt -- optimizers
offers list con -- config configs
offers ctl ru -- runs
offers watch ru -- runs
offers ctl runs "" -- status ranks checkpoint stop
offers ctl runs ra -- ranks
offers ctl --json runs st -- status stop
offers train mine.yaml --set ep -- epochs=
offers train mine.yaml -s optimizer. -- optimizer.name= optimizer.lr= optimizer.momentum=
offers train mine.yaml --set clip. -- clip.norm= clip.value=
offers train mine.yaml --set checkpoint.ke -- checkpoint.keep=
offers train mine.yaml --set optimizer = ad -- adam adamw adadelta
offers train mine.yaml --set optimizer = -- sgd lamb
offers train mine.yaml --set log = -- run ranks lines
offers train mine.yaml --set evaluate = t -- true
offers bench ops --model resnet1 -- resnet18
offers import a b -m gp -- gpt2
offers train mine.yaml --set nosuchkey = x --
offers train mine.yaml --set epochs = 3 --res -- --resume
exit $failed
END
