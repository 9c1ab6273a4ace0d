# Starts the service by systemd, in its own namespaces, and runs a script there. Arguments: a root
# file system that is a mount point, with the package installed and eth0 and eth1 in its
# configuration; the script; interfaces.sh and units.sh. Leaves /check.log and /daemon.log in it.
root=$1 script=$2 interfaces=$3 units=$4

eval "$interfaces"

mount --make-rprivate /
mount -t proc proc "$root/proc"
# systemd must not change settings that the whole kernel shares.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs sysfs "$root/sys"
mount -t bpf bpf "$root/sys/fs/bpf"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done

eval "$units"

cd "$root"
mkdir -p run/before
pivot_root . run/before
umount -l /run/before
# Without a log target: it would log as if it were the machine's own.
exec env -i container=check PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --unit=check.target --log-target=null --show-status=no
