# Containers next to the one that is asked, by what `run` and `inside` do.

# run_named NAME WORDS…: a container to its end, its lines with its name before them
run_named() {
    name=$1
    shift
    {
        code=0
        (run "$name" "$@") || code=$?
        echo "$code" >"$here/$name.code"
    } 2>&1 | sed -u "s/^/$name | /"
}

# beside NAME WORDS…: a container whose end ends all, so that nobody measures what is left
beside() {
    (
        run_named "$@"
        echo "webdyno: the service $1 ended by itself with exit code $(cat "$here/$1.code")"
        echo "webdyno: one that may end is depended on with service_completed_successfully"
        kill -TERM $$
    ) &
}

# ended NAME WORDS…: a container that has to end well before the next ones start
ended() {
    run_named "$@"
    code=$(cat "$here/$1.code")
    [ "$code" = 0 ] || {
        echo "webdyno: the service $1, which others wait for, ended with exit code $code and not 0"
        exit 1
    }
}

# healthy NAME WORDS…: waits until a command in a container succeeds
healthy() {
    name=$1 before=
    shift
    echo "webdyno: waiting until $name is healthy: $*"
    until said=$(inside "$name" "$@" 2>&1); do
        [ "$said" = "$before" ] || echo "webdyno: $name isn't healthy: $said"
        before=$said
        sleep 0.2
    done
}
