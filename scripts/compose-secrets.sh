#!/usr/bin/env bash
# Makes the passwords and addresses that compose/compose.yml hands to its containers, anew for this machine. A folder that
# is there already is left alone: its passwords are in the volumes of the databases by then.
#
#   scripts/compose-secrets.sh [FOLDER]       compose/secrets
#
# The folder is for its owner alone. The files in it can be read by all, because a container reads its own as another user.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-compose/secrets}
[[ -e "$folder/nats.env" ]] && exit 0

# A letter first: the configuration of NATS takes what begins with a digit for a number.
password() { printf 'p%s' "$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')"; }
secret() { printf '%s\n' "$2" >"$partial/$1"; }

mkdir -p "$(dirname "$folder")"
partial="$(mktemp -d "$folder.XXXXXX")"
trap 'rm -rf "$partial"' EXIT

# Users of NATS, with the rights that compose/nats.conf gives them.
for user in coordinator cdc_mysql cdc_postgres sink progress; do
    word="$(password)"
    printf '%s_PASSWORD=%s\n' "${user^^}" "$word" >>"$partial/nats.env"
    secret "nats_$user" "nats://$user:$word@nats:4222"
done
word="$(password)"
printf 'WEIR_PASSWORD=%s\n' "$word" >>"$partial/nats.env"
secret weir.env "NATS_URL=nats://weir:$word@nats:4222"

# The demo's databases.
word="$(password)"
secret mysql_password "$word"
secret shop_url "mysql://weir:$word@mysql:3306/"
word="$(password)"
secret postgres_password "$word"
secret warehouse_url "postgres://weir:$word@postgres:5432/warehouse"
secret mysql_root_password "$(password)"

chmod 444 "$partial"/*
mkdir -p "$folder"
chmod 700 "$folder"
mv "$partial"/* "$folder"/
