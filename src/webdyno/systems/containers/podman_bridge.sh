# A bridge between the container that is asked and those that have networks of their own.
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
