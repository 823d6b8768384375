#!/usr/bin/env bash
# Seeds each target with the beginnings of histories: our kept ones and the checkers' cases,
# and, where DEPOSED_CORPUS names a folder of other people's, those.
set -euo pipefail
cd "$(dirname "$0")"

# seed TARGET FILE…: the first 8 KiB of each, as far as whole lines go.
seed() {
  local target=$1 file text
  shift
  mkdir -p "corpus/$target"
  for file in "$@"; do
    [ -f "$file" ] || continue
    case $file in
      *.gz) text=$(gzip -dc "$file" 2>/dev/null | head -c 8192 || true) ;;
      *) text=$(head -c 8192 "$file" | tr -d '\0') ;;
    esac
    printf '%s\n' "$text" | sed '$d' >"corpus/$target/$(printf '%s' "$file" | cksum | cut -d' ' -f1)"
  done
}

made=$(mktemp)
trap 'rm -f "$made"' EXIT
shopt -s globstar nullglob
seed deposed ../../histories/*.jsonl ../tests/verdicts/*.jsonl
printf '%s\n' 'process,type,f,time,token,key,value' 'a,invoke,acquire,1,,,' 'a,ok,acquire,2,7,,' \
  'a,invoke,write,3,7,x,"[1 ""b""]"' 'a,info,write,,,x,' >"$made"
seed csv "$made"
printf '%s\n' '{"ClientId":1,"Input":{"Type":"txn","Txn":{"Conditions":[{"Key":"a","ExpectedRevision":2}],"OperationsOnSuccess":[{"Type":"put-operation","Put":{"Key":"a","Value":{"Value":"1"}}}]}},"Call":1,"Output":{"Txn":{"Failure":false,"Results":[{}]},"Revision":3},"Return":2}' \
  '{"ClientId":2,"Input":{"Type":"range","Range":{"Start":"a","End":""}},"Call":3,"Output":{"Range":{"KVs":[{"Key":"a","Value":{"Value":"1"},"ModRevision":3}],"Count":1},"Revision":3},"Return":4}' \
  '' >"$made"
seed etcd "$made"
printf '%s\n' '[{"process":0,"type":"invoke","f":"cas","value":[null,{"a":"\u00e9"}],"time":5},' \
  ' {"process":0,"type":"fail","f":"cas","value":[1.5,true],"error":"held","index":7}]' '' >"$made"
seed json "$made"
if [ -n "${DEPOSED_CORPUS:-}" ]; then
  seed edn "$DEPOSED_CORPUS"/**/*.edn "$DEPOSED_CORPUS"/**/*.edn.gz "$DEPOSED_CORPUS"/**/*.txt
  seed json "$DEPOSED_CORPUS"/**/*.json
  seed jepsen-log "$DEPOSED_CORPUS"/**/*.log
fi
