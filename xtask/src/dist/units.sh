# Writes the units that let systemd run $script beside the service, and nothing else. $root is the
# root file system, with /run mounted.
mkdir -p "$root/run/systemd/system/limiter.service.d"
cat >"$root/run/systemd/system/limiter.service.d/alone.conf" <<END
[Service]
StandardError=append:/daemon.log
END
cat >"$root/run/systemd/system/check.target" <<END
[Unit]
DefaultDependencies=no
Wants=check.service
END
cat >"$root/run/systemd/system/check.service" <<END
[Unit]
DefaultDependencies=no
Wants=limiter.service
After=limiter.service
SuccessAction=exit-force
FailureAction=exit-force
SuccessActionExitStatus=0
FailureActionExitStatus=1
[Service]
Type=oneshot
TimeoutStartSec=120s
ExecStart=/bin/sh -eu /run/check.sh
StandardOutput=file:/check.log
StandardError=inherit
END
printf '%s' "$script" >"$root/run/check.sh"
