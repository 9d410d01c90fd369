# The smallest agent: one call, whose answer is the file.
curl -fsS "$OPENAI_BASE_URL/chat/completions" -H "authorization: Bearer $OPENAI_API_KEY" \
  -H 'content-type: application/json' -o /tmp/reply.json \
  -d "{\"model\": \"any\", \"messages\": [{\"role\": \"user\", \"content\": \"$POLAR_INSTRUCTION\"}]}" || exit
python3 -c 'import json; print(json.load(open("/tmp/reply.json"))["choices"][0]["message"]["content"])' > greeting.txt
