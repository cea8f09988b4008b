// Prints the tokens that the tokenizers of Hugging Face make of some texts, for each
// model of a folder: {model: [{text, tokens}]}.
import { readFileSync, readdirSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";

const texts = [
  "hello world", "Hello, unaffable!", "the number 42 costs $5.", "Café café CAFÉ", "日本語のテキスト",
  "zażółć x-ray <b>texting</b> & \"quotes\" 'n", "İstanbul ı I", "q", "🦊 hello", "tab\tnew\nline\u00a0space\u200djoin",
  "hello ".repeat(60) + "world",
];
const out = {};
for (const name of readdirSync(process.argv[2])) {
  const read = (file) => JSON.parse(readFileSync(`${process.argv[2]}/${name}/${file}`, "utf8"));
  const limit = read("sentence_bert_config.json").max_seq_length;
  const tokenizer = new Tokenizer({ added_tokens: [], post_processor: null, ...read("tokenizer.json") }, {});
  const vocabulary = read("tokenizer.json").model.vocab;
  out[name] = texts.map((text) => {
    const ids = tokenizer.encode(text, { add_special_tokens: false }).ids.slice(0, limit - 2);
    return { text, tokens: [vocabulary["[CLS]"], ...ids, vocabulary["[SEP]"]] };
  });
}
console.log(JSON.stringify(out));
