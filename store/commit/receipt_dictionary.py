#!/usr/bin/env python3
"""Writes receipt_dictionary.h: the dictionary that packs the first steps of receipts (packed_step.h).

A Zstandard dictionary (RFC 8878 §5) has words, which a step repeats, and codes of the letters that are usual between
them. Stored steps need the dictionary that packed them, so a new one makes the receipts of a store unreadable.
"""

import ctypes
import ctypes.util
from pathlib import Path

# Steps repeat the end of this text at the least cost.
WORDS = (
    '{"what":"waits","blockedBy":"","recovery":true,"event":"callResult","waitsFor":{"id":"",'
    '"until":17,"to":"https://","retries":2},"followUps":[17],"deadLetter":"","reason":"",'
    '"ended":"completed","claim":"","changesLeftOut":1,"nodes":["nodes[2].else[0].do[0]"],'
    '{"what":"turn","accepted":{"type":"userMessage","at":17,"daemon":"",'
    '"type":"inject","at":17,'
    '"daemon":"","by":"0m","text":"","position":[1,0,0],"recorded":{"data":{""}}},"behind":1,"at":17,"us":10,"flow":"",'
    '"version":1,"nodes":["nodes[0]","nodes[1]","nodes[1].then[0]","nodes[1].then[1]",'
    '"nodes[1].then[1].cases[\\"\\"][0]"],"nodesRun":1,"changes":[{"path":"profile.","bytes":8,'
    '"value":""},{"path":"context.","bytes":0,"removed":true,"bytesBefore":0,"before":""},'
    '{"path":"context.","bytes":8,"value":1,"bytesBefore":8,"before":1}],"outputs":[1,1]}')

# Typical steps. The codes fit them.
TEXTS = (
    "Where is my parcel?", "hello", "yes", "no, thank you", "I would like a table for four at half past seven",
    "Your parcel has left our warehouse.", "2", "Can you help me with my invoice please", "Bonjour, je voudrais commander",
    "Guten Tag, ich habe eine Frage zu meiner Bestellung", "12 Main Street, Springfield", "order 48151623",
    "ann@example.com", "stop", "What are your opening hours on Sunday?", "Quiero cambiar mi pedido",
)
DATA = (
    '{"event":"shipped","orderId":"A-1017","t":26503565624671}', '{"event":"payment","amount":42.5,"currency":"EUR"}',
    '{"status":"delivered","carrier":"DHL","tracking":"JD014600003RU"}', '{"button":"confirm"}',
    '{"event":"reminder","dueAt":"2026-11-28T19:30:00Z"}', '{"customer":{"id":"c-90210","tier":"gold"}}',
)
FLOWS = ("Main", "Orders", "Parcels", "Welcome", "Table reservation", "Feedback")
VARIABLES = (
    '{"path":"context.count","bytes":8,"value":26,"bytesBefore":8,"before":25}',
    '{"path":"context.orderId","bytes":12,"value":"A-1017","bytesBefore":0}',
    '{"path":"profile.name","bytes":9,"value":"Ann","bytesBefore":0}',
    '{"path":"context.state","bytes":10,"value":"asked","bytesBefore":9,"before":"new"}',
    '{"path":"context.cart","bytes":240,"bytesBefore":180}',
    '{"path":"context.pending","bytes":0,"removed":true,"bytesBefore":8,"before":true}',
)
NODES = (
    '"nodes[0]"', '"nodes[0]","nodes[1]"', '"nodes[0]","nodes[1]","nodes[1].then[0]"',
    '"nodes[2]","nodes[2].else[0]","nodes[3]"', '"nodes[0]","nodes[1]","nodes[1].cases[\\"shipped\\"][0]"',
    '"nodes[4].onError[0]"', '"Orders: nodes[0]","Orders: nodes[1]","nodes[5]"',
)
ENDS = (
    ',"outputs":[26,1]}', ',"outputs":[3,2],"ended":"completed"}', '}',
    ',"waitsFor":{"id":"0mi7x4vq3p09amp51v8k13fv-c1","to":"https://api.example.com/orders","retries":2},'
    '"recorded":{"request":"5f1d7a8e09c43b26"}}',
    ',"outputs":[7,1],"followUps":[1795902994162]}',
    ',"outputs":[1,1],"recorded":{"begins":true,"profile":{"name":"Ann","locale":"en-GB"}}}',
)
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
MOST_BYTES = 2048
IDENTIFIER = 0xC0DE  # of two bytes, and not reserved


def identifier(number, length=24):
    """Returns letters as of a random id, the same for the same number."""
    value = pow(number + 12345, 41, 36**length)
    return "0m" + "".join(LETTERS[value // 36**place % 36] for place in range(length - 2))


def samples():
    for number in range(600):
        kind = ("inject", "userMessage")[number % 3 == 0]
        data = DATA[number % len(DATA)]
        rest = f',"recorded":{{"data":{data}}}' if kind == "inject" or number % 5 == 0 else ""
        at = 1_795_000_000_000 + number * 7_654_321
        yield (f'{{"what":"turn","accepted":{{"type":"{kind}","at":{at},"daemon":"host-{number * 97 % 100}",'
               f'"by":"{identifier(number)}","text":"{TEXTS[number * 7 % len(TEXTS)]}",'
               f'"position":[1,{number % 8},{number * 31}]{rest}}},"behind":{number % 12},"at":{at + number % 900},'
               f'"us":{20 + number % 300},"flow":"{FLOWS[number % len(FLOWS)]}","version":{1 + number % 20},'
               f'"nodes":[{NODES[number * 5 % len(NODES)]}],"nodesRun":{1 + number % 9},'
               f'"changes":[{VARIABLES[number % len(VARIABLES)]},{VARIABLES[number * 5 % len(VARIABLES)]}]'
               f'{ENDS[number * 11 % len(ENDS)]}').encode()


class Parameters(ctypes.Structure):  # ZDICT_params_t
    _fields_ = [("compression_level", ctypes.c_int), ("notification_level", ctypes.c_uint), ("id", ctypes.c_uint)]


def dictionary():
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd"))
    finalize = zstd.ZDICT_finalizeDictionary
    finalize.restype = ctypes.c_size_t
    finalize.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p,
                         ctypes.POINTER(ctypes.c_size_t), ctypes.c_uint, Parameters]
    texts = list(samples())
    sizes = (ctypes.c_size_t * len(texts))(*map(len, texts))
    words = WORDS.encode()
    made = ctypes.create_string_buffer(MOST_BYTES)
    size = finalize(made, MOST_BYTES, words, len(words), b"".join(texts), sizes, len(texts), Parameters(1, 0, IDENTIFIER))
    if size > MOST_BYTES:
        raise SystemExit("Zstandard refuses the samples")
    return made.raw[:size]


def main():
    made = dictionary()
    lines = (", ".join(f"{byte:3}" for byte in made[at:at + 16]) for at in range(0, len(made), 16))
    Path(__file__).with_suffix(".h").write_text(
        "// Written by receipt_dictionary.py.\n#pragma once\n\n#include <array>\n\nnamespace conversed::store {\n\n"
        "// clang-format off\n"
        f"inline constexpr std::array<unsigned char, {len(made)}> receipt_dictionary{{{{\n"
        + "".join(f"  {line},\n" for line in lines) +
        "}};\n// clang-format on\n\n}  // namespace conversed::store\n")


if __name__ == "__main__":
    main()
