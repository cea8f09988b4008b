"""Prints the vectors that PyTorch's layers make of tokens: peers_vectors.py MODELS TOKENS.

The encoder is torch.nn.TransformerEncoderLayer with the normalisation behind each part,
which is BERT's; nothing of it is written here but where each weight goes.
"""

import json
import struct
import sys

import torch


def tensors(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    out = {}
    for name, t in head.items():
        if name != "__metadata__":
            assert t["dtype"] == "F32"
            a, b = t["data_offsets"]
            out[name] = torch.frombuffer(bytearray(data[a:b]), dtype=torch.float32).reshape(t["shape"]).double()
    return out


def layer(config, w, i):
    form = "tanh" if config["hidden_act"] == "gelu_new" else "none"
    e = torch.nn.TransformerEncoderLayer(
        config["hidden_size"], config["num_attention_heads"], config["intermediate_size"], dropout=0.0,
        activation=lambda x: torch.nn.functional.gelu(x, approximate=form), layer_norm_eps=config["layer_norm_eps"], batch_first=True, dtype=torch.float64)
    p = f"encoder.layer.{i}."
    state = {}
    for kind in ("weight", "bias"):
        state["self_attn.in_proj_" + kind] = torch.cat([w[f"{p}attention.self.{x}.{kind}"] for x in ("query", "key", "value")])
        for to, of in (("self_attn.out_proj", "attention.output.dense"), ("norm1", "attention.output.LayerNorm"),
                       ("linear1", "intermediate.dense"), ("linear2", "output.dense"), ("norm2", "output.LayerNorm")):
            state[f"{to}.{kind}"] = w[f"{p}{of}.{kind}"]
    e.load_state_dict(state)
    return e.eval()


def vector(config, pooling, w, layers, tokens):
    words = torch.nn.functional.embedding(torch.tensor([tokens]), w["embeddings.word_embeddings.weight"])
    x = words + w["embeddings.position_embeddings.weight"][: len(tokens)] + w["embeddings.token_type_embeddings.weight"][0]
    x = torch.nn.functional.layer_norm(x, x.shape[-1:], w["embeddings.LayerNorm.weight"], w["embeddings.LayerNorm.bias"], config["layer_norm_eps"])
    for e in layers:
        x = e(x)
    if pooling["pooling_mode_cls_token"]:
        return x[0, 0]
    if pooling["pooling_mode_max_tokens"]:
        return x[0].amax(0)
    return x[0].mean(0)


def main(models, tokens):
    out = {"made_with": {"torch": torch.__version__, "tokenizers": "@huggingface/tokenizers 0.2.0"}, "models": {}}
    for name, texts in sorted(json.load(open(tokens, encoding="utf-8")).items()):
        read = lambda file: json.load(open(f"{models}/{name}/{file}", encoding="utf-8"))
        config, pooling, w = read("config.json"), read("1_Pooling/config.json"), tensors(f"{models}/{name}/model.safetensors")
        layers = [layer(config, w, i) for i in range(config["num_hidden_layers"])]
        with torch.no_grad():
            out["models"][name] = [
                {**t, "vector": [round(v, 6) for v in vector(config, pooling, w, layers, t["tokens"]).tolist()]} for t in texts]
    print(json.dumps(out, ensure_ascii=False, separators=(",", ":")).replace('{"text"', '\n{"text"'))


main(*sys.argv[1:])
