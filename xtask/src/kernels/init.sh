#!/programs/busybox sh
# The first and only process of the emulated machine: prepares what the limiter needs, tries the
# daemon on a veth interface, and runs the tests. A line `@step NAME ok` reports each step that
# passed.
# shellcheck shell=dash

export PATH=/programs:/tools HOME=/tmp
/programs/busybox --install -s /tools
mount -t devtmpfs none /dev
exec >/dev/console 2>&1
mount -t proc none /proc
mount -t sysfs none /sys
mount -t tmpfs none /tmp
mount -t tmpfs none /run
# For the program that records handshakes.
mount -t cgroup2 none /sys/fs/cgroup

# Not busybox's, which its shell prefers and which knows no veth.
ip() {
    /programs/ip "$@"
}

step() {
    name=$1
    shift
    "$@" && echo "@step $name ok"
}

# The kernel itself sends router solicitations and multicast reports on interfaces that come up, so
# there is something to count.
interfaces() {
    while read -r driver; do
        modprobe "$driver" || return
    done </drivers
    ip link set lo up &&
        ip link add s0 type veth peer name c0 &&
        ip link set s0 up &&
        ip link set c0 up &&
        ip link add link c0 name v0 type vlan id 5 &&
        ip link delete v0
}

# Waits up to a minute until the daemon's status matches.
says() {
    for _ in $(seq 60); do
        limiter status --json 2>/dev/null | grep -q "$1" && return
        sleep 1
    done
    limiter status
    cat /tmp/daemon.log
    return 1
}

attach() {
    limiter run -c /limiter.yaml -i s0 --mode native --metrics off >/tmp/daemon.log 2>&1 &
    daemon=$!
    says '"attached":true'
}

# Pings all hosts on the link, as limits count no neighbour discovery.
count() {
    ping -6 -c 30 -I c0 ff02::1 >/dev/null 2>&1 &
    says '"within_limits":[1-9]'
}

detach() {
    kill "$daemon" && wait "$daemon" && ! ip -details link show s0 | grep xdp
}

step interfaces interfaces &&
    step attach attach &&
    step count count &&
    step detach detach

# Runs this machine's share of one part of a program's tests. The machines take names by turns, since
# neighbours take about as long.
share() {
    program=$1 part=$2 parts=$3
    shift 3
    # shellcheck disable=SC2154 # The kernel makes variables of its command line.
    "$program" --list "$@" | sed -n 's/: test$//p' |
        awk -v parts="$parts" -v part="$part" 'NR % parts == part' |
        awk -v machines="$limiter_machines" -v machine="$limiter_machine" \
            'NR % machines == machine' >/tmp/share
    # Without a name all would run.
    # shellcheck disable=SC2046 # No name has a space.
    [ -s /tmp/share ] && "$program" --test-threads 1 --show-output --exact $(cat /tmp/share)
}

# The machine's own kernel tries many more.
export LIMITER_DIFFERENTIAL_POLICIES=1

# The verifier's budget, and verdicts of the kernel beside native ones.
share engines 0 1 object::the_largest kernel_and_native_agree_and_do
# shellcheck disable=SC2154 # As above.
if [ "$limiter_parts" -gt 0 ]; then
    # Skips what needs two CPUs, or more time than emulation has, and what has run. bpftool is missing here.
    share engines "$limiter_part" "$limiter_parts" --skip bpftool --skip object::the_largest --skip contention \
        --skip properties --skip kernel_and_native_agree_and_do --skip flood --skip sixty
    # Many a machine's own kernel has no VLAN interfaces and no tunnels.
    share stack "$limiter_part" "$limiter_parts" with_vlan_interfaces beside_the_frame devices_are
fi
echo "@end"
poweroff -f
