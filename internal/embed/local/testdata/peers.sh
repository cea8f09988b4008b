#!/bin/sh
# Makes peers.json anew: sh peers.sh FOLDER, in this folder. It needs python3 with PyTorch
# (Debian: python3-torch) and node with @huggingface/tokenizers under FOLDER/node_modules
# (npm install --prefix FOLDER @huggingface/tokenizers).
set -eu
(cd .. && go test -run TestVectorsAreThoseOfOthers -models "$1/models" .)
cp peers_tokens.mjs "$1/"
node "$1/peers_tokens.mjs" "$1/models" >"$1/tokens.json"
"${PYTHON:-python3}" peers_vectors.py "$1/models" "$1/tokens.json" >peers.json
