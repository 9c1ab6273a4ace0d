# Arguments: the package, a later version of it, an empty directory, the manual pages, the file system
# to copy, interfaces.sh, the image's recipe, container.sh to start the daemon without systemd,
# recipe.sh to follow the recipe, to start the service boot.sh, service.sh and units.sh, and the most
# bytes of the program; empty is what must not be done.
package=$1 later=$2 scratch=$3 man=$4 base=$5 interfaces=$6 recipe=$7 container=$8 follow=$9
shift 9
boot=$1 service=$2 units=$3 largest=$4
root=$scratch/root
unit=/usr/lib/systemd/system/limiter.service
link=$root/etc/systemd/system/multi-user.target.wants/limiter.service
configuration=$root/etc/limiter/limiter.yaml

fail() {
    echo "$1" >&2
    exit 1
}

step() {
    echo "package: $1"
}

# Shows dpkg's output only if it fails.
dpkg_inside() {
    chroot "$root" env DEBIAN_FRONTEND=noninteractive \
        dpkg --force-unsafe-io "$@" >"$scratch/log" 2>&1 || {
        cat "$scratch/log" >&2
        fail "dpkg $* fails"
    }
}

status() {
    chroot "$root" dpkg-query --show --showformat='${Status}' limiter 2>/dev/null || true
}

mount -t tmpfs -o mode=755 tmpfs "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$root"
mount -t overlay -o "lowerdir=$base,upperdir=$scratch/upper,workdir=$scratch/work" overlay "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
# No service manager runs in there, even if one runs here.
mount -t tmpfs -o mode=755 tmpfs "$root/run"
# Small images exclude manual pages,
rm -f "$root"/etc/dpkg/dpkg.cfg.d/*
# and do not let packages start services.
rm -f "$root/usr/sbin/policy-rc.d"
[ -z "$(status)" ] || dpkg_inside --purge limiter
mkdir "$root/packages"
cp "$package" "$root/packages/package.deb"
cp "$later" "$root/packages/later.deb"

step install
dpkg_inside --install /packages/package.deb
[ "$(status)" = "install ok installed" ] || fail "the package is not installed: $(status)"
[ -z "$largest" ] || [ "$(stat -c %s "$root/usr/bin/limiter")" -le "$largest" ] ||
    fail "the program is larger than $largest bytes"
chroot "$root" limiter check /etc/limiter/limiter.yaml >/dev/null
for page in "$man"/*.1.gz; do
    [ -s "$root/usr/share/man/man1/$(basename "$page")" ] || fail "$page is not installed"
done
chroot "$root" bash -euc '. /usr/share/bash-completion/completions/limiter; complete -p limiter' \
    >/dev/null
for file in zsh/vendor-completions/_limiter fish/vendor_completions.d/limiter.fish; do
    [ -s "$root/usr/share/$file" ] || fail "$file is not installed"
done
for file in rules.yaml dashboard.json mixin.libsonnet; do
    [ -s "$root/usr/share/limiter/monitoring/$file" ] || fail "$file is not installed"
done
for file in fail2ban/limiter.conf crowdsec/limiter-bouncer; do
    [ -s "$root/usr/share/limiter/$file" ] || fail "$file is not installed"
done
[ -s "$root/etc/limiter/limiter.d/README" ] || fail "the folder limiter.d is not there"
! [ -e "$link" ] || fail "an example's limits are enabled"

step unit
said=$(chroot "$root" systemd-analyze verify --man=no "$unit" 2>&1) || fail "$said"
[ -z "$said" ] || fail "systemd-analyze verify: $said"
# Without these the guard may lack descriptors, and a fault take the whole machine.
for bound in LimitNOFILE=16384 MemoryMax=75% TasksMax=1024; do
    grep -qx "$bound" "$root$unit" || fail "the unit has no $bound"
done
# The threshold is in tenths: an exposure of 2.2 out of 10.
chroot "$root" systemd-analyze security --no-pager --offline=true --threshold=22 "$unit" \
    >"$scratch/log" 2>&1 || {
    cat "$scratch/log" >&2
    fail "the service is more exposed than it was"
}

step upgrade
echo "# an operator's" >>"$configuration"
chroot "$root" systemctl enable limiter.service 2>/dev/null
mkdir -p "$root/var/lib/limiter"
touch "$root/var/lib/limiter/state"
dpkg_inside --install /packages/later.deb
tail -n 1 "$configuration" | grep -qx "# an operator's" || fail "the operator's change is lost"
[ -L "$link" ] || fail "the operator's service is no longer enabled"

step remove
dpkg_inside --remove limiter
! [ -e "$root/usr/bin/limiter" ] || fail "the program is still there"
[ -e "$configuration" ] || fail "the configuration is gone before the purge"
[ -e "$root/var/lib/limiter/state" ] || fail "the state is gone before the purge"

purged() {
    [ -z "$(status)" ] || fail "the package is not purged: $(status)"
    # overlayfs marks deleted files by devices with the number 0.
    left=$(find "$scratch/upper" -name '*limiter*' ! -type c)
    [ -z "$left" ] || fail "not purged: $left"
}

step purge
dpkg_inside --purge limiter
purged

with_interfaces() {
    sed -i 's/^# interfaces:.*/interfaces: [eth0, eth1]/' "$configuration"
}

if [ -n "$container" ]; then
    if [ -n "$follow" ]; then
        step image
        sh -euc "$follow" recipe.sh "$root" "$package" "$recipe" >"$scratch/log" 2>&1 || {
            cat "$scratch/log" >&2
            fail "the recipe of the image fails: see above"
        }
    else
        dpkg_inside --install /packages/package.deb
    fi
    step "without systemd"
    with_interfaces
    timeout 150 unshare --mount --net --kill-child --fork \
        sh -euc "$container" container.sh "$root" "$recipe" "$interfaces" >"$scratch/log" 2>&1 || {
        cat "$scratch/log" "$root/run/container.log" >&2
        fail "the daemon without systemd failed: see the last command above"
    }
    dpkg_inside --purge limiter
    purged
fi

if [ -n "$boot" ]; then
    step service
    dpkg_inside --install /packages/package.deb
    with_interfaces
    # systemd makes cgroups below the one that it starts in: make one of its own, to remove with
    # them.
    mkdir "$scratch/cgroup"
    mount -t cgroup2 cgroup2 "$scratch/cgroup"
    group=$scratch/cgroup/limiter-check-$$
    mkdir "$group"
    trap 'find "$group" -depth -type d -exec rmdir {} +' EXIT
    timeout 150 sh -euc 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$group" \
        unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child \
        sh -euc "$boot" boot.sh "$root" "$service" "$interfaces" "$units" >"$scratch/log" 2>&1 || {
        cat "$scratch/log" "$root/check.log" "$root/daemon.log" >&2
        fail "the service failed: see the last command above"
    }
    purged
fi
