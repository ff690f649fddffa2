#!/usr/bin/env bash
# The servers of Debian that some tests start for themselves, which no package registry of a language brings. Installed
# where they are missing and that is possible, asked for in one line elsewhere. Part of `make test`.
set -euo pipefail

missing=()
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || missing+=(postgresql)
command -v java >/dev/null || missing+=(openjdk-17-jre-headless)
command -v mvn >/dev/null || missing+=(maven)
if ((${#missing[@]} == 0)); then
  exit
fi
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "the tests need what is not installed here (Debian: apt install ${missing[*]})" >&2
  exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
