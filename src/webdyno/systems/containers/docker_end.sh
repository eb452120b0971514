# Removes what Docker has of @written@.
here=$(dirname "$0")
start=webdyno-$(basename "$(dirname "$here")")-$(basename "$here")

# removed KIND NAME…: those of the names that are there
removed() {
    kind=$1
    shift
    for name; do
        @docker@ $kind "$start$name" >/dev/null 2>&1 &
    done
    wait
}

removed "rm --force --volumes" @containers@
removed "network rm" ""
removed "volume rm" @volumes@
