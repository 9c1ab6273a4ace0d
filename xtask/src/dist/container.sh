# Runs the daemon without systemd, as the image's recipe starts it and with the rights that
# docs/operate.md gives the container, as process 1 of its namespace. Runs in a mount and a network
# namespace of its own. Arguments: a root file system with the package, and with eth0 and eth1 in its
# configuration; the recipe; interfaces.sh. Each line must succeed; each is logged.
root=$1 recipe=$2 interfaces=$3
set -x
command=$(printf '%s\n' "$recipe" | sed -n 's/^\(ENTRYPOINT\|CMD\) \[\(.*\)\]$/\2/p' | tr -d '",' | tr '\n' ' ')
[ "$command" = "limiter run --pin " ]
signal=$(printf '%s\n' "$recipe" | sed -n 's/^STOPSIGNAL SIG//p')

mount --make-rprivate /
mount -t sysfs sysfs "$root/sys"
mount -t bpf bpf "$root/sys/fs/bpf"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mkdir -p "$root/var/lib/limiter"
ip link set lo up
eval "$interfaces"

refused() {
    if "$@"; then return 1; fi
}

inside() {
    chroot "$root" "$@"
}

attached() {
    ip link show eth0 | grep -q prog/xdp
}

# The status of pins without a daemon says that they are attached, too.
runs() {
    inside limiter status >"$root/run/status" 2>&1 || return 1
    ! grep -q 'NO DAEMON is running' "$root/run/status" || return 1
    inside limiter status --json | grep -q '"name":"eth1","mode":"native","attached":true'
}

start() {
    # shellcheck disable=SC2086 # They are words.
    unshare --pid --fork chroot "$root" setpriv --inh-caps=-all \
        --bounding-set=-all,+net_admin,+bpf,+perfmon $command >"$root/run/container.log" 2>&1 &
    container=$!
    for _ in $(seq 100); do
        ! runs || break
        sleep 0.2
    done
    daemon=$(cat "/proc/$container/task/$container/children")
    daemon=${daemon% }
    attached
}

start
grep -x 'NSpid:.*	1' "/proc/$daemon/status"
grep -x 'CapEff:	000000c000001000' "/proc/$daemon/status"

# A reload.
sed -i 's/count: 400/count: 300/' "$root/etc/limiter/limiter.yaml"
kill -HUP "$daemon"
for _ in $(seq 50); do
    ! inside limiter check /etc/limiter/limiter.yaml --diff |
        grep -q 'A reload changes nothing' || break
    sleep 0.2
done
inside limiter check /etc/limiter/limiter.yaml --diff | grep -q 'A reload changes nothing'

# A stop: the limits hold, and another start takes them over.
kill "-$signal" "$daemon"
wait "$container"
attached
inside limiter status | grep -q 'NO DAEMON is running'
[ -s "$root/var/lib/limiter/state" ]
start

# `limiter detach` ends it.
inside limiter detach
wait "$container"
refused attached
[ ! -e "$root/sys/fs/bpf/limiter" ]
