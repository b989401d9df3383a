# chroot.sh - systems to try things in; sourced. Needs root, debootstrap and unshare.
#
#   MIRROR=URL   of Debian; default http://deb.debian.org/debian

# What is missing for them, or nothing.
chroot_missing()
{
    [ "$(id -u)" -eq 0 ] || echo "making a chroot needs root"
    for tool in debootstrap unshare; do
        command -v $tool >/dev/null || echo "no $tool here (Debian: debootstrap util-linux)"
    done
}

# chroot_make ROOT RELEASE PACKAGES: a minimal system; PACKAGES is a folder that keeps what was downloaded.
chroot_make()
{
    mkdir -p "$1" "$3"
    debootstrap --variant=minbase --cache-dir="$3" "$2" "$1" "${MIRROR:-http://deb.debian.org/debian}"
    cp /etc/resolv.conf "$1/etc/resolv.conf"
    # Testing's lists expire after a week, and a mirror may be behind.
    echo 'Acquire::Check-Valid-Until "false";' >"$1/etc/apt/apt.conf.d/mirror"
}

# chroot_run ROOT COMMAND: of the shell, as root and without this machine's environment. Its mounts and
# processes are gone afterwards.
chroot_run()
{
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount --pid --fork --propagation private sh -euc '
        mount -t proc proc "$1/proc"
        mount --rbind /sys "$1/sys"
        mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
        mkdir -p "$1/dev/pts"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
        exec chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            HOME=/root LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive \
            ${http_proxy:+http_proxy="$http_proxy"} sh -euc "$2" </dev/null
    ' sh "$1" "$2"
}
