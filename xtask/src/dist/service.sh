# What is asked of the service in its life, by systemctl and dpkg. Runs beside it, with the later
# package as /packages/later.deb. Each line has to succeed; each is told.
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

# systemd starts it again, after 2 s at most.
becomes_active() {
    for _ in $(seq 20); do
        ! systemctl is-active limiter || return 0
        sleep 0.5
    done
    return 1
}

# What came in at eth0 …
received() {
    awk '$1 == "eth0:" { print $3 }' /proc/net/dev
}

# … and what the program there has counted: as much, if it was there all the time.
counted() {
    limiter status --json | sed 's/.*"reasons":{\([^}]*\)}.*/\1/' | tr ',' '\n' |
        awk -F : '{ sum += $2 } END { print sum }'
}

# Waits for a packet that is on its way.
no_gap() {
    for _ in $(seq 5); do
        [ "$(received)" != "$(counted)" ] || return 0
        sleep 0.1
    done
    return 1
}

# Sends packets to eth0 while it runs a command.
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

# Started, in its sandbox.
systemctl is-active limiter
limiter status --json | grep -q '"name":"eth1","mode":"native","attached":true'
limiter status --json | grep -q '"state":{"file":"/var/lib/limiter/state","saved_at":"'
grep -x 'CapEff:	000000c000001000' "/proc/$(process)/status"
[ "$(stat -c '%a %u' /run/limiter/control.sock)" = '600 0' ]
[ "$(find /sys/fs/bpf -maxdepth 1 -name 'limiter*')" = /sys/fs/bpf/limiter ]
ip link set peer0 up
ip link set eth0 up
under_traffic sleep 0.2

# Reloaded, or not.
sed -i 's/count: 400/count: 300/' /etc/limiter/limiter.yaml
reloaded=$(process)
under_traffic systemctl reload limiter
[ "$(process)" = "$reloaded" ]
limiter check /etc/limiter/limiter.yaml --diff | grep -q 'A reload changes nothing'
cp /etc/limiter/limiter.yaml /etc/limiter/good.yaml
echo 'limitz: {}' >>/etc/limiter/limiter.yaml
refused systemctl reload limiter
systemctl is-active limiter
# Its start would be refused, too: the limits stay, and it starts as soon as it can.
under_traffic refused systemctl restart limiter
limiter status | grep -q 'NO DAEMON is running'
mv /etc/limiter/good.yaml /etc/limiter/limiter.yaml
becomes_active

# Restarted.
restarted=$(process)
under_traffic systemctl restart limiter
[ "$(process)" != "$restarted" ]

# Stopped, and started again.
under_traffic systemctl stop limiter
[ "$(systemctl show --property Result --value limiter)" = success ]
[ ! -e /run/limiter ]
attached
limiter status | grep -q 'NO DAEMON is running'
under_traffic systemctl start limiter

# Killed.
kill_and_wait() {
    systemctl kill --signal KILL limiter
    sleep 0.5
    becomes_active
}
under_traffic kill_and_wait

# Upgraded.
upgraded=$(process)
under_traffic dpkg --force-unsafe-io --install /packages/later.deb
[ "$(process)" != "$upgraded" ]
systemctl is-active limiter

# Ended.
limiter detach
refused attached
[ "$(systemctl show --property Result --value limiter)" = success ]
refused systemctl is-active limiter
systemctl start limiter
attached

# The sandbox has denied it nothing that it needs.
refused grep '"level":"WARN"' /daemon.log

# Removed while it runs: it ends, and what it has pinned goes, too.
dpkg --remove limiter
refused attached
[ ! -e /sys/fs/bpf/limiter ]
[ -e /var/lib/limiter/state ]
dpkg --purge limiter
