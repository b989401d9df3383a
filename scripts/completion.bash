# Completion of cohort's commands and options for bash. It asks the program itself: lines of
# `cohort --help` that start with two spaces and a name, and options in `cohort COMMAND --help`.

_cohort()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[*]:1:COMP_CWORD-1} program=$1
    local commands command= candidate

    commands=$("$program" --help 2>/dev/null |
        sed -n '/^Commands:/,/^$/s/^  \([a-z]\{1,\}\( [a-z]\{1,\}\)\{0,1\}\)  .*/\1/p')
    COMPREPLY=()
    while read -r candidate; do
        [[ "$before " == "$candidate "* ]] && command=$candidate
    done <<<"$commands"
    if [[ -z $command ]]; then
        # The next word of every command that begins with the words so far.
        while read -r candidate; do
            [[ -z $before ]] || [[ $candidate == "$before "* ]] || continue
            candidate=${candidate#"$before"}
            candidate=${candidate# }
            COMPREPLY+=("${candidate%% *}")
        done <<<"$commands"
        mapfile -t COMPREPLY < <(compgen -W "${COMPREPLY[*]}" -- "$word")
    elif [[ $word == -* ]]; then
        # shellcheck disable=SC2086 # a command may be two words
        mapfile -t COMPREPLY < <(compgen -W "$("$program" $command --help 2>/dev/null |
            grep -oE '^  (-[a-z], |    )--[a-z-]+' | grep -oE -- '--[a-z-]+')" -- "$word")
    elif [[ $command == list ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$program" list 2>/dev/null |
            grep -oE '^  [a-z]+' | tr -d ' ')" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null
    fi
}
complete -F _cohort cohort
