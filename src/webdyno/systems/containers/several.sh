# The container that is asked, and those that have networks of their own, on one bridge.
ip link add services type bridge
ip address add @front@/24 dev services
ip link set services up

# network NUMBER NAME ADDRESS: a network for a container
network() {
    touch "network-$2"
    unshare --net="$here/network-$2" true
    inside="nsenter --net=network-$2"
    $inside ip link add eth0 type veth peer name "service-$1" netns $$
    ip link set "service-$1" master services up
    $inside ip address add "$3/24" dev eth0
    $inside ip link set lo up
    $inside ip link set eth0 up
}

# run_named NAME WORDS…: a container to its end, its lines with its name before them
run_named() {
    name=$1
    shift
    {
        code=0
        (network=$here/network-$name; podman_run "$@") || code=$?
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
    until said=$(@podman@ exec "$name" "$@" 2>&1); do
        [ "$said" = "$before" ] || echo "webdyno: $name isn't healthy: $said"
        before=$said
        sleep 0.2
    done
}
