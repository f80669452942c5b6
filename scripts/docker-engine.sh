#!/usr/bin/env bash
# Runs a Docker engine that has nothing in common with the machine's own, nor with its network: programs, processes,
# mounts and network are in namespaces of its own. It needs root, and scripts/setup-docker.sh before.
#
#   scripts/docker-engine.sh DIR [FOLDER..]
#
# It serves DIR/docker.sock. Containers can mount what lies in DIR and in the FOLDERs. What ends this process (SIGKILL; it
# heeds no other signal but those of a terminal) ends the engine and all containers, and so does the end of the engine
# itself. Images are kept in the user's cache folder for the next time.
set -euo pipefail

cache="${XDG_CACHE_HOME:-$HOME/.cache}/weir/servers"
root="$cache/docker-root"
data="$cache/docker-data"

# First pass, in the machine's namespaces: wait for the images, which one engine at a time may use.
if [[ "${1:-}" != inside ]]; then
    [[ $# -ge 1 ]] || { echo "usage: $0 DIR [FOLDER..]" >&2; exit 2; }
    mkdir -p "$data"
    exec 9>"$data.lock"
    flock 9
    # What an engine that was killed has left of its control groups; they are empty.
    find /sys/fs/cgroup -depth -type d -path '*/weir-compose*' -delete
    # The same process goes on, so that who started it can enter its namespaces.
    exec unshare --mount --net --propagation private -- "$0" inside "$@"
fi

# Second pass. The root is the cached one with a layer on top that goes away with this process.
shift
dir="$(realpath "$1")"
top="$dir/engine"
mkdir -p "$top"
mount -t tmpfs tmpfs "$top"
mkdir "$top/upper" "$top/work" "$top/root"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$top/upper,workdir=$top/work" "$top/root"
cd "$top/root"
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs run
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount --rbind /dev dev
mount -t proc proc proc
mkdir -p var/lib/docker old
mount --bind "$data" var/lib/docker
# Containers, their volumes and networks last as long as the engine: of those that a sudden end left, it would start some
# again. They are in memory, where a database is made without waiting for a disk.
for part in containers volumes network; do
    mkdir -p "var/lib/docker/$part"
    mount -t tmpfs tmpfs "var/lib/docker/$part"
done
for folder in "$@"; do
    mkdir -p ".$folder"
    mount --bind "$folder" ".$folder"
done
pivot_root . old
umount -l /old

export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
ip link set lo up
# With PID 1 of the process namespace, which is the engine, all others end.
exec unshare --pid --fork --kill-child --mount-proc -- dockerd --host "unix://$dir/docker.sock" --group 0 \
    --pidfile /run/dockerd.pid --exec-root /run/docker --cgroup-parent /weir-compose \
    --exec-opt native.cgroupdriver=cgroupfs --log-level warn
