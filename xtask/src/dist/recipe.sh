# Does what the image's recipe does, in a root file system with Debian's archive in reach.
# Arguments: the root; the package; the recipe.
root=$1 package=$2 recipe=$3
copied=$(printf '%s\n' "$recipe" | sed -n 's/^COPY \([^ ]*\) \/tmp\/$/\1/p')
# The package's name must be one that the recipe takes.
# shellcheck disable=SC2254 # It is a pattern.
case $(basename "$package") in
$copied) cp "$package" "$root/tmp/" ;;
*)
    echo "the recipe copies $copied: not $package" >&2
    exit 1
    ;;
esac
cp /etc/resolv.conf "$root/etc/resolv.conf"
run=$(printf '%s\n' "$recipe" | sed -n '/^RUN /,/[^\\]$/p' | sed '1s/^RUN //')
chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -euc "$run"
