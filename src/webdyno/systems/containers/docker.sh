# Starts @written@ by Docker, in a network of its own that leads nowhere else.
set -eu
here=$PWD
workspace=$(dirname "$here")
start=webdyno-$(basename "$workspace")-$(basename "$here")
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
label=--label=webdyno.$(id -u).$(stat --dereference --format %i /proc/self/ns/mnt)=$workspace
host={{ server.host }}
network=${host%.*}
first=$((${host##*.} / @addresses@ * @addresses@))

# ask WORDS…: without the settings that its user may have for other containers
ask() {
    @docker@ "$@"
}

# Docker's firewall closes an internal network, where it has one; a gateway that isn't there does so
# anyway.
ask network create "$label" --driver bridge --internal --subnet "$network.$first/@prefix@" \
    --gateway "$network.$((first + 1))" \
    --aux-address "DefaultGatewayIPv4=$network.$((first + @addresses@ - 2))" "$start" >/dev/null

# run NAME WORDS…: takes the place of the shell. Docker's name server knows the names of the network;
# all others it would ask of the machine's own servers, were it not to ask where nobody listens.
run() {
    name=$1
    shift
    exec @docker@ run --pull never --log-driver none --no-healthcheck "$label" \
        --name "$start-$name" --network "$start" --network-alias "$name" \
        --dns 0.0.0.0 --dns-search . --dns-opt timeout:1 --dns-opt attempts:1 \
        --cpuset-cpus "$cpus" @group@ "$@"
}

# inside NAME COMMAND…
inside() {
    name=$1
    shift
    ask exec "$start-$name" "$@"
}

volume() {
    ask volume create "$label" "$start-$1" >/dev/null
}

# list NAME…: writes the first process of each container into a file, once all are up. For a moment
# Docker says of one that has ended that it runs.
list() {
    for name; do
        not_here=0
        until said=$(ask inspect --format '{{.State.Pid}} {{.Id}}' "$start-$name" 2>/dev/null) &&
            grep -qs "${said#* }" "/proc/${said% *}/cgroup"; do
            case $said in '' | '0 '*) not_here=0 ;; *) not_here=$((not_here + 1)) ;; esac
            [ "$not_here" -lt 40 ] || {
                echo "webdyno: Docker's containers are no processes of this machine, but of a virtual"
                echo "webdyno: one or of another container's: call webdyno where Docker's daemon runs"
                kill -TERM $$
                exit 1
            }
            sleep 0.05
        done
        echo "${said% *}" >>"$here/containers.new"
    done
    mv "$here/containers.new" "$here/containers"
}
