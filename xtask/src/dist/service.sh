# Tests the service through its life, with systemctl and dpkg. Runs beside it, with the later
# package as /packages/later.deb. Each line must succeed; each is logged.
set -x

refused() {
    if "$@"; then return 1; fi
}

attached() {
    ip link show eth0 | grep -q prog/xdp
}

process() {
    systemctl show --property MainPID --value limiter
}

# systemd restarts it after 2 s at most; to start takes many times as long on an emulated machine.
becomes_active() {
    for _ in $(seq 120); do
        ! systemctl is-active limiter || return 0
        sleep 0.5
    done
    return 1
}

# The packets that arrived on eth0,
received() {
    awk '$1 == "eth0:" { print $3 }' /proc/net/dev
}

# and those that its program counted: as many, if it was always attached.
counted() {
    limiter status --json | sed 's/.*"reasons":{\([^}]*\)}.*/\1/' | tr ',' '\n' |
        awk -F : '{ sum += $2 } END { print sum }'
}

# Waits for packets on their way.
no_gap() {
    for _ in $(seq 5); do
        [ "$(received)" != "$(counted)" ] || return 0
        sleep 0.1
    done
    return 1
}

# Sends packets to eth0 while a command runs.
under_traffic() {
    touch /run/sending
    bash -c 'while [ -e /run/sending ]; do echo >/dev/udp/10.99.0.9/9; sleep 0.005; done' &
    sender=$!
    before=$(received)
    "$@"
    [ "$(received)" -gt "$before" ]
    rm /run/sending
    wait "$sender"
    no_gap
}

# The service runs, in its sandbox.
systemctl is-active limiter
limiter status --json | grep -q '"name":"eth1","mode":"native","attached":true'
saved() {
    limiter status --json | grep -q '"state":{"file":"/var/lib/limiter/state","saved_at":"'
}
for _ in $(seq 20); do
    ! saved || break
    sleep 0.1
done
saved
grep -x 'CapEff:	000000c000001000' "/proc/$(process)/status"
[ "$(stat -c '%a %u' /run/limiter/control.sock)" = '600 0' ]
[ "$(find /sys/fs/bpf -maxdepth 1 -name 'limiter*')" = /sys/fs/bpf/limiter ]
ip link set peer0 up
ip link set eth0 up
under_traffic sleep 0.2

# Reloads, good and bad.
sed -i 's/count: 400/count: 300/' /etc/limiter/limiter.yaml
reloaded=$(process)
under_traffic systemctl reload limiter
[ "$(process)" = "$reloaded" ]
limiter check /etc/limiter/limiter.yaml --diff | grep -q 'A reload changes nothing'
cp /etc/limiter/limiter.yaml /etc/limiter/good.yaml
echo 'limitz: {}' >>/etc/limiter/limiter.yaml
refused systemctl reload limiter
systemctl is-active limiter
# A start would be refused, too: the limits stay, and the service starts as soon as it can.
under_traffic refused systemctl restart limiter
limiter status | grep -q 'NO DAEMON is running'
mv /etc/limiter/good.yaml /etc/limiter/limiter.yaml
becomes_active

# A restart.
restarted=$(process)
under_traffic systemctl restart limiter
[ "$(process)" != "$restarted" ]

# A stop and a start.
under_traffic systemctl stop limiter
[ "$(systemctl show --property Result --value limiter)" = success ]
[ ! -e /run/limiter ]
attached
limiter status | grep -q 'NO DAEMON is running'
under_traffic systemctl start limiter

# A crash.
kill_and_wait() {
    systemctl kill --signal KILL limiter
    sleep 0.5
    becomes_active
}
under_traffic kill_and_wait

# An upgrade.
upgraded=$(process)
under_traffic dpkg --force-unsafe-io --install /packages/later.deb
[ "$(process)" != "$upgraded" ]
systemctl is-active limiter

# `limiter detach` ends it.
limiter detach
refused attached
[ "$(systemctl show --property Result --value limiter)" = success ]
refused systemctl is-active limiter
systemctl start limiter
attached

# The sandbox denied it nothing that it needs.
refused grep '"level":"WARN"' /daemon.log

# Removing the running service ends it, and removes its pins.
dpkg --remove limiter
refused attached
[ ! -e /sys/fs/bpf/limiter ]
[ -e /var/lib/limiter/state ]
dpkg --purge limiter
