"""Makes the base model: a small causal language model that knows the form of a tool call and little of the game.

Its tokenizer and its weights are made on the spot, from transcripts of careless players, who use the key now and then and
else open any door. The folder is one of Hugging Face's: weights, tokenizer, chat template. Takes 15 seconds on a core.
"""

from __future__ import annotations

import hashlib
import random
import shutil
from pathlib import Path
from typing import Any

import doors
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

FOLDER = Path(__file__).parent
CACHE = FOLDER.parents[1] / ".cache/trainers"

SEED = 0
VOCABULARY = 512
HIDDEN, LAYERS, HEADS = 64, 2, 4
CONTEXT = 512
#: Standard deviation of the first weights; small models learn slowly from smaller ones.
INITIAL = 0.1
#: Share of their calls in which the players of the transcripts use the key.
CAREFUL = 0.4
TRANSCRIPTS, STEPS, BATCH, LEARNING_RATE = 2_000, 200, 16, 3e-3

START, END, PAD = "<|im_start|>", "<|im_end|>", "<|endoftext|>"

# ChatML with tool calls in Hermes form. Tools are not written down: there is but one.
TEMPLATE = """
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' %}
{%- generation %}
{{- message.content or '' }}
{%- for call in message.tool_calls or [] %}
{%- set arguments = call.function.arguments %}
{{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}
{{- (arguments if arguments is string else arguments | tojson) + '}</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>' }}
{%- endgeneration %}
{{- '\\n' }}
{%- else %}
{{- message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
""".strip()

Messages = list[dict[str, Any]]


def base_model() -> Path:
    """The folder; made at the first call, and again where what it is made of has changed."""
    logging.disable_progress_bar()
    made_of = b"".join((FOLDER / name).read_bytes() for name in ("base.py", "doors.py"))
    folder = CACHE / f"base-{hashlib.sha256(made_of).hexdigest()[:12]}"
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        make(unfinished)
        unfinished.rename(folder)
    return folder


def make(folder: Path) -> None:
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    transcripts = [play(rng) for _ in range(TRANSCRIPTS)]
    tokenizer = make_tokenizer(transcripts)
    model = make_model(tokenizer)
    train(model, tokenizer, transcripts)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def play(rng: random.Random) -> Messages:
    """A careless player's session."""
    keys, tried = doors.draw_keys(rng), []
    messages: Messages = [{"role": "user", "content": doors.instruction(keys)}]
    while not doors.is_over(keys, tried):
        careful = rng.random() < CAREFUL
        tried.append(keys[len(tried)] if careful else rng.randint(1, doors.DOORS))
        call = {"function": {"name": "open", "arguments": {"door": tried[-1]}}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "content": doors.answer(keys, tried)})
    return messages


def chat() -> PreTrainedTokenizerFast:
    """A byte-level BPE that has yet to be trained: any text has ids, and they lead back to it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, chat_template=TEMPLATE, model_max_length=CONTEXT
    )


def make_tokenizer(transcripts: list[Messages]) -> PreTrainedTokenizerFast:
    made = chat()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.backend_tokenizer.train_from_iterator(
        (made.apply_chat_template(messages, tokenize=False) for messages in transcripts), trainer
    )
    made.add_special_tokens({"pad_token": PAD, "eos_token": END, "additional_special_tokens": [START]})
    return made


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=HIDDEN,
            intermediate_size=4 * HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            initializer_range=INITIAL,
        )
    )


def train(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, transcripts: list[Messages]) -> None:
    """Next-token prediction of what the players say."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    batch = tokenizer.apply_chat_template(
        transcripts, padding=True, return_tensors="pt", return_dict=True, return_assistant_tokens_mask=True
    )
    labels = batch["input_ids"].masked_fill(batch["assistant_masks"] == 0, -100)
    for step in range(STEPS):
        some = torch.randint(len(transcripts), (BATCH,))
        ids, attention = batch["input_ids"][some], batch["attention_mask"][some]
        loss = model(input_ids=ids, attention_mask=attention, labels=labels[some]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == STEPS - 1:
            print(f"base model: step {step}, loss {loss.item():.3f}", flush=True)
