#!/usr/bin/env bash
# Makes sure that the tests have a MySQL and a MariaDB server to start. MariaDB comes from the system's packages. MySQL is in
# no release of Debian, so a small root file system of the development branch is made for it in the user's cache folder; the
# tests start its server without a chroot. Repeating it costs nothing.
set -euo pipefail

root="${WEIR_MYSQL_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/weir/servers/mysql-root}"

mysql_there() { [[ -x "$root/usr/sbin/mysqld" ]]; }
mariadb_there() { [[ -x /usr/sbin/mariadbd || -x /usr/libexec/mariadbd ]]; }

packages=()
mariadb_there || packages+=(mariadb-server-core)
mysql_there || command -v debootstrap >/dev/null || packages+=(debootstrap)

if [[ ${#packages[@]} -gt 0 ]]; then
    if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
        echo "missing: ${packages[*]}; install them with this system's package manager" >&2
        exit 3
    fi
    echo "installing: ${packages[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >&2 </dev/null
    apt-get install -q -y --no-install-recommends "${packages[@]}" >&2 </dev/null
fi

mysql_there && exit 0
if [[ $EUID -ne 0 ]]; then
    echo "MySQL is missing: run scripts/setup-mysql.sh as root, or set WEIR_MYSQL_ROOT to a folder with usr/sbin/mysqld" >&2
    exit 3
fi
echo "making a root file system with MySQL in $root (two minutes)" >&2
mkdir -p "$(dirname "$root")"
partial="$(mktemp -d "$root.XXXXXX")"
trap 'rm -rf "$partial"' EXIT
debootstrap --variant=minbase --include=mysql-server-core,libaio1t64 sid "$partial" >&2 </dev/null
rm -rf "$partial"/var/cache/apt/archives/*.deb
chmod 755 "$partial"
mv "$partial" "$root"
