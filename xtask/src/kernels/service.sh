#!/programs/busybox sh
# The first program of the emulated machine: lets Debian's systemd take over, in a file system of
# which it may make others. The line `@service ok` says that all has passed.

export PATH=/programs:/tools
/programs/busybox --install -s /tools
mount -t devtmpfs none /dev
exec >/dev/console 2>&1
mount -t proc none /proc
modprobe veth

root=/root
mkdir -p "$root"
mount -t tmpfs none "$root"
mv /base/* "$root/"
mount -t devtmpfs none "$root/dev"
mount -t proc none "$root/proc"
mount -t sysfs none "$root/sys"
mount -t tmpfs -o mode=755 none "$root/run"

# Not busybox's, which its shell prefers and which knows no veth.
ip() {
    /programs/ip "$@"
}

ip link set lo up
. /interfaces.sh
# shellcheck disable=SC2034 # units.sh reads it.
script=$(cat /script)
. /units.sh
mkdir -p "$root/run/systemd/system/check.service.d"
cat >"$root/run/systemd/system/check.service.d/console.conf" <<END
[Unit]
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
TimeoutStartSec=1200s
StandardOutput=file:/dev/console
ExecStartPost=/bin/echo "@service ok"
END
umount /proc
exec switch_root "$root" /lib/systemd/systemd --unit=check.target --log-target=null --show-status=no
