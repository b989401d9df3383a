# Completion of cohort's commands, options, requests, configs and keys for bash. It asks the program
# itself: lines of `cohort --help` that start with two spaces and a name, options in `cohort COMMAND
# --help`, and the lists of `cohort list`.

# Names at the start of lines of a list.
_cohort_names()
{
    "$1" list "$2" 2>/dev/null | sed -n '/^Keys of every /q; s/^\([a-z][a-z0-9/_-]*\)  *[^ ].*/\1/p'
}

# Keys of a config: `epochs=`, and `optimizer.lr=` behind the name of a section and a dot.
_cohort_keys()
{
    local section=${2%%.*} list=

    if [[ $2 != *.* ]]; then
        _cohort_names "$1" config | sed 's/$/=/'
        return
    fi
    case $section in
    model) list=models ;;
    data) list=datasets ;;
    partition | test_partition) list=partitions ;;
    optimizer) list=optimizers ;;
    schedule) list=schedules ;;
    strategy) list=strategies ;;
    esac
    if [[ -n $list ]]; then
        echo "$section.name="
        "$1" list $list 2>/dev/null
    else
        "$1" list config 2>/dev/null | sed -n "/^$section /,/^[a-z]/p"
    fi | sed -n "s/^    \([a-z][a-z_0-9]*\)  *[^ ].*/$section.\1=/p; /^$section.name=/p" | sort -u
}

# Values of a key that takes the name of a plugin, or one of some words.
_cohort_values()
{
    case $2 in
    model) _cohort_names "$1" models ;;
    data) _cohort_names "$1" datasets ;;
    partition | test_partition) _cohort_names "$1" partitions ;;
    optimizer) _cohort_names "$1" optimizers ;;
    schedule) _cohort_names "$1" schedules ;;
    strategy) _cohort_names "$1" strategies ;;
    *) "$1" list config 2>/dev/null | sed -n "/^$2 /{n; s/;.*//
        s/^ *true or false/true false/p; s/,//g; s/^ *one of //p
    }" ;;
    esac
}

# bash cuts words at '=', so that `--set key=value` is four.
_cohort_set()
{
    local word=$2 at=$((COMP_CWORD - 1))

    [[ $word == "=" ]] && word= && at=$COMP_CWORD
    if [[ ${COMP_WORDS[at]} == "=" ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_cohort_values "$1" "${COMP_WORDS[at - 1]}")" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -W "$(_cohort_keys "$1" "$word")" -- "$word")
        compopt -o nospace 2>/dev/null
    fi
}

# Whether the word to complete is what `--set` or `-s` takes.
_cohort_in_set()
{
    local at=$((COMP_CWORD - 1))

    [[ ${COMP_WORDS[COMP_CWORD]} == "=" || ${COMP_WORDS[at]} == "=" ]] && at=$((COMP_CWORD - 2))
    [[ ${COMP_WORDS[COMP_CWORD - 1]} == "=" ]] && at=$((COMP_CWORD - 3))
    ((at > 0)) && [[ ${COMP_WORDS[at]} == --set || ${COMP_WORDS[at]} == -s ]]
}

# How many words behind the command are neither options nor the word to complete.
_cohort_arguments()
{
    local i n=0

    for ((i = $1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -* ]] || n=$((n + 1))
    done
    echo $n
}

_cohort()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[*]:1:COMP_CWORD-1} program=$1
    local commands command= candidate words=1

    commands=$("$program" --help 2>/dev/null |
        sed -n '/^Commands:/,/^$/s/^  \([a-z]\{1,\}\( [a-z]\{1,\}\)\{0,1\}\)  .*/\1/p')
    COMPREPLY=()
    while read -r candidate; do
        [[ "$before " == "$candidate "* ]] && command=$candidate
    done <<<"$commands"
    [[ $command == *" "* ]] && words=2
    if [[ -z $command ]]; then
        # The next word of every command that begins with the words so far.
        while read -r candidate; do
            [[ -z $before ]] || [[ $candidate == "$before "* ]] || continue
            candidate=${candidate#"$before"}
            candidate=${candidate# }
            COMPREPLY+=("${candidate%% *}")
        done <<<"$commands"
        mapfile -t COMPREPLY < <(compgen -W "${COMPREPLY[*]}" -- "$word")
        return
    fi
    if _cohort_in_set; then
        _cohort_set "$program" "$word"
        return
    fi
    if [[ $word == -* ]]; then
        # shellcheck disable=SC2086 # a command may be two words
        mapfile -t COMPREPLY < <(compgen -W "$("$program" $command --help 2>/dev/null |
            grep -oE '^  (-[a-z], |    )--[a-z-]+' | grep -oE -- '--[a-z-]+')" -- "$word")
        return
    fi
    case $command:${COMP_WORDS[COMP_CWORD - 1]} in
    import:--model | import:-m | "bench ops:--model" | "bench ops:-m")
        mapfile -t COMPREPLY < <(compgen -W "$(_cohort_names "$program" models)" -- "$word")
        return
        ;;
    esac
    case $command in
    "data get")
        mapfile -t COMPREPLY < <(compgen -W "$("$program" data get --list 2>/dev/null |
            sed -n 's/^\([a-z][a-z0-9-]*\) .*/\1/p')" -- "$word")
        return
        ;;
    runs | report | watch)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        ;;
    list)
        mapfile -t COMPREPLY < <(compgen -W "$("$program" list 2>/dev/null |
            grep -oE '^  [a-z]+' | tr -d ' ')" -- "$word")
        return
        ;;
    ctl)
        if [[ $(_cohort_arguments $((words + 1))) == 1 ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$("$program" ctl --help 2>/dev/null |
                sed -n 's/^  \(status\|ranks\|checkpoint\|stop\) .*/\1/p')" -- "$word")
            return
        fi
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        ;;
    train | compare | inspect | "bench train" | "bench ops" | "bench kernels" | "data partition")
        mapfile -t COMPREPLY < <(
            compgen -f -- "$word"
            compgen -W "$(_cohort_names "$program" configs)" -- "$word"
        )
        ;;
    *)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        ;;
    esac
    compopt -o filenames 2>/dev/null
}
complete -F _cohort cohort
