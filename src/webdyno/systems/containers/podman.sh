# Starts @written@ by Podman, in a network of its own that ends with it.
set -eu
here=$PWD
group=/webdyno-$(basename "$(dirname "$here")")/$(basename "$here")
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
link=$(echo {{ server.host }} | tr . -)
outside="nsenter --net=/proc/$PPID/ns/net"

ip link add eth0 type veth peer name "$link" netns $PPID
ip address add {{ server.host }} peer {{ server.client }} dev eth0
ip link set lo up
ip link set eth0 up
$outside ip address add {{ server.client }} peer {{ server.host }} dev "$link"
$outside ip link set "$link" up
mount -t tmpfs none /dev/shm    # Podman keeps its locks there, for all containers of the machine

# run NAME WORDS…: takes the place of the shell. A container is root, and could make a program with
# set-user-ID of the log, were that its output.
run() {
    name=$1
    shift
    network=$here/network-$name
    [ -e "$network" ] || network=/proc/self/ns/net
    mkfifo -m 600 "$here/said-$name"
    cat <"$here/said-$name" &
    exec nsenter --net="$network" @run@ \
        --name "$name" --cgroup-parent "$group" --cpuset-cpus "$cpus" "$@" >"$here/said-$name" 2>&1
}

# inside NAME COMMAND…
inside() {
    @podman@ exec "$@"
}

volume() {
    @podman@ volume create "$1" >/dev/null
}
