"""Make a tiny chat model with random weights: Qwen2's architecture and a tokenizer of its own, from nothing but the
standard library's source as text to train the tokenizer on.

    python tiny-model.py FOLDER

What it says is noise, which is what token bookkeeping is best tested with: it ends tokens in the middle of characters
and writes words in ways in which the tokenizer never would, so that text does not lead back to its ids.
Needs torch, transformers, tokenizers. The same versions make the same model.
"""

import sys
import sysconfig
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

VOCABULARY = 2048
CONTEXT = 4096
END, PAD = "<|im_end|>", "<|endoftext|>"

# transformers chooses the tokenizer's class by the model's type and puts Qwen2's pattern in the place of any other.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# ChatML; messages only, any number of system turns at their places.
TEMPLATE = """
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
""".strip()


def make_tokenizer() -> PreTrainedTokenizerFast:
    texts = sorted(str(path) for path in Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, "<|im_start|>", END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train(texts, trainer)
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=["<|im_start|>"],
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = TEMPLATE
    return made


def make_model(end: int, pad: int) -> Qwen2ForCausalLM:
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        # Wide enough that the next token depends on those before it: a wrong context shows in every logprob.
        initializer_range=0.25,
        tie_word_embeddings=True,
        eos_token_id=end,
        pad_token_id=pad,
        bos_token_id=None,
    )
    model = Qwen2ForCausalLM(config).to(torch.float32)
    model.generation_config = GenerationConfig(eos_token_id=end, pad_token_id=pad, do_sample=True)
    return model


def main(folder: str) -> None:
    tokenizer = make_tokenizer()
    end, pad = tokenizer.convert_tokens_to_ids([END, PAD])
    make_model(end, pad).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    probe = "Say 17 don't\n\n  x = {'a': 1}"
    loaded = AutoTokenizer.from_pretrained(folder)
    assert loaded(probe).input_ids == tokenizer(probe).input_ids, "the tokenizer changes when it is loaded"


if __name__ == "__main__":
    main(sys.argv[1])
