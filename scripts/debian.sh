# Sourced by scripts that try things in an empty Debian: makes a wheel, a Debian, and runs programs in it.
# They run as root in the checkout, and have $place, a temporary folder that is removed at the end.

say() { printf '\n== %s\n' "$*" >&2; }

begin() {
    place=$(mktemp -d)
    chmod 755 "$place" # servers run as an ordinary user
    trap 'rm -rf --one-file-system "$place"' EXIT
    trap 'exit 130' INT TERM
}

wheel_in() { # $1: a folder, which gets the wheel: the one that WHEEL names, or a new one
    say "the wheel"
    mkdir -p "$1"
    if [ -n "${WHEEL-}" ]; then
        cp "$WHEEL" "$1"
    else
        .dyno/uv/bin/uv build --quiet --wheel --out-dir "$1" .
    fi
    ls -l "$1" >&2
}

empty_debian() { # $1: its root; then packages
    root=$1 packages=ca-certificates
    shift
    for package; do packages=$packages,$package; done
    say "an empty Debian with $packages"
    command -v mmdebstrap >/dev/null || apt-get install -y -qq mmdebstrap
    # Archives and registries are reached there as they are here.
    set --
    for settings in /etc/apt/apt.conf.d/*; do set -- "$@" "--aptopt=$settings"; done
    mmdebstrap --quiet --variant=apt "--include=$packages" "$@" \
        "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root"
    cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
}

in_debian() { # $1: its root; then a command, which gets a process tree of its own
    unshare --mount --pid --fork --kill-child sh -eu -c '
        root=$1
        shift
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        exec chroot "$root" "$@"' in_debian "$@"
}
