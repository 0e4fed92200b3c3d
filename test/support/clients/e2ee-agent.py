"""An agent that implements docs/encryption.md alone: an HTTP service (serve) or a mailbox worker (mailbox).

Arguments: mode, then a JSON object with keys, sender (own name), peers (name to key set), and for a mailbox url,
agent and token. It answers each message with its upper-case text; text that starts with "stream" with two chunks.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION = "rialto-e2ee-v1"
KEM_ID = b"KEM\x00\x20"
SUITE_ID = b"HPKE\x00\x20\x00\x01\x00\x02"
conf = json.loads(sys.argv[2])


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def extract(salt, suite, label, ikm):
    return hmac.new(salt or bytes(32), b"HPKE-v1" + suite + label + ikm, hashlib.sha256).digest()


def expand(prk, suite, label, info, length):
    info = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    out, block, count = b"", b"", 1
    while len(out) < length:
        block = hmac.new(prk, block + info + bytes([count]), hashlib.sha256).digest()
        out, count = out + block, count + 1
    return out[:length]


class Context:
    """An HPKE context in base mode (RFC 9180 sections 4.1, 5.1 and 5.2)."""

    def __init__(self, dh, enc, recipient, info):
        eae = extract(b"", KEM_ID, b"eae_prk", dh)
        shared = expand(eae, KEM_ID, b"shared_secret", enc + recipient, 32)
        schedule = b"\x00" + extract(b"", SUITE_ID, b"psk_id_hash", b"") + extract(b"", SUITE_ID, b"info_hash", info)
        secret = extract(shared, SUITE_ID, b"secret", b"")
        self.key = AESGCM(expand(secret, SUITE_ID, b"key", schedule, 32))
        self.nonce = int.from_bytes(expand(secret, SUITE_ID, b"base_nonce", schedule, 12), "big")
        self.seq = 0

    def next_nonce(self):
        nonce = (self.nonce ^ self.seq).to_bytes(12, "big")
        self.seq += 1
        return nonce

    def seal(self, plaintext, aad):
        return self.key.encrypt(self.next_nonce(), plaintext, aad)

    def open(self, ciphertext, aad):
        return self.key.decrypt(self.next_nonce(), ciphertext, aad)


def newest(keys, use):
    return [key for key in keys["keys"] if key["use"] == use][-1]


def signed(enc, aad, payload):
    return (VERSION + " signature").encode() + enc + hashlib.sha256(aad).digest() + payload


def decrypt(envelope, message):
    assert envelope["encryption_version"] == VERSION and envelope["recipient"] == conf["sender"]
    assert envelope["message_id"] == message["messageId"] and envelope["context_id"] == message["contextId"]
    key = [one for one in conf["keys"]["keys"] if one["kid"] == envelope["recipient_kid"]][0]
    outer = unb64(envelope["encrypted_payload"])
    assert outer[0] == 1 and b64(outer) == envelope["encrypted_payload"]
    enc, ciphertext = outer[1:33], outer[33:]
    aad = canonical({name: text for name, text in envelope.items() if name != "encrypted_payload"})
    dh = X25519PrivateKey.from_private_bytes(unb64(key["d"])).exchange(X25519PublicKey.from_public_bytes(enc))
    inner = Context(dh, enc, unb64(key["x"]), (VERSION + key["kid"]).encode()).open(ciphertext, aad)
    end = 1 + inner[0]
    kid, signature, payload = inner[1:end].decode(), inner[end : end + 64], inner[end + 64 :]
    assert kid == envelope["sender_signing_kid"]
    peer = [one for one in conf["peers"][envelope["sender"]]["keys"] if one["kid"] == kid][0]
    Ed25519PublicKey.from_public_bytes(unb64(peer["x"])).verify(signature, signed(enc, aad, payload))
    return payload


class Sealer:
    """Seals one message, or the chunks of one stream, for the sender of an order."""

    def __init__(self, envelope, task):
        self.to = newest(conf["peers"][envelope["sender"]], "enc")
        self.by = newest(conf["keys"], "sig")
        own = X25519PrivateKey.generate()
        self.enc = own.public_key().public_bytes_raw()
        public = unb64(self.to["x"])
        dh = own.exchange(X25519PublicKey.from_public_bytes(public))
        self.context = Context(dh, self.enc, public, (VERSION + self.to["kid"]).encode())
        self.members = {
            "encryption_version": VERSION,
            "sender": conf["sender"],
            "sender_signing_kid": self.by["kid"],
            "recipient": envelope["sender"],
            "recipient_kid": self.to["kid"],
            "message_id": os.urandom(16).hex(),
            "in_reply_to": envelope["message_id"],
            "context_id": task["contextId"],
            "task_id": task["id"],
            "content_type": "text/plain",
        }

    def seal(self, payload, more):
        members = {**self.members, **more}
        aad = canonical(members)
        private = Ed25519PrivateKey.from_private_bytes(unb64(self.by["d"]))
        kid = self.by["kid"].encode()
        signature = private.sign(signed(self.enc, aad, payload))
        ciphertext = self.context.seal(bytes([len(kid)]) + kid + signature + payload, aad)
        return {"encrypted_payload": b64(b"\x01" + self.enc + ciphertext), **members}


def events_for(order):
    """Returns the reports of an order: one artifact, or two chunks of one, and the end of the task."""
    message, task = order["message"], order["task"]
    envelope = message["parts"][0]["data"]
    payload = decrypt(envelope, message)
    parts = json.loads(payload)["parts"] if "json" in envelope["content_type"] else [{"text": payload.decode()}]
    text = parts[0]["text"].upper().encode()
    sealer = Sealer(envelope, task)
    if text.startswith(b"STREAM"):
        halves = [(text[:7], {"stream_seq": "0"}), (text[7:], {"stream_seq": "1", "stream_end": "true"})]
        sealed = [sealer.seal(half, more) for half, more in halves]
    else:
        sealed = [sealer.seal(text, {})]
    artifacts = [
        {"type": "artifact", "artifact": {"artifactId": "answer", "parts": [{"data": one}]}, "append": index > 0}
        for index, one in enumerate(sealed)
    ]
    return artifacts + [{"type": "complete"}]


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps({"events": events_for(order)}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def call(path, token, body):
    headers = {"authorization": "Bearer " + token, "content-type": "application/json"}
    request = urllib.request.Request(conf["url"] + path, json.dumps(body).encode(), headers, method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or b"null")


def work_mailbox():
    while True:
        order = call("/api/mailbox/%s/lease?waitMs=1000" % conf["agent"], conf["token"], {})
        if not order:
            continue
        for index, event in enumerate(events_for(order)):
            event = {**event, "id": "e-%d" % index, "leaseEpoch": order["leaseEpoch"]}
            call("/api/executions/%s/events" % order["task"]["id"], order["token"], event)


if sys.argv[1] == "serve":
    server = HTTPServer(("127.0.0.1", 0), Service)
    print(server.server_port, flush=True)
    server.serve_forever()
else:
    print("ready", flush=True)
    work_mailbox()
