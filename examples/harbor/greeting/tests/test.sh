#!/bin/bash
# A reward is written where nothing was done, too: 0.
said=0
short=0
if [ -f greeting.txt ] && [ -n "$(tr -d '[:space:]' < greeting.txt)" ]; then
  said=1
  [ "$(wc -w < greeting.txt)" -le "${WORDS_MAX:-40}" ] && short=1
fi
echo "{\"said\": $said, \"short\": $short}" > /logs/verifier/reward.json
cat /logs/verifier/reward.json
