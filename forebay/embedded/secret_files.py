"""Secrets of one embedded Airflow: created once, in files that only their owner may read."""

from __future__ import annotations

import base64
import json
import secrets

from forebay.embedded.layout import Layout
from forebay.errors import InfrastructureError
from forebay.system.files.durable import write_private
from forebay.system.message import Message

USER = "admin"
# Without l, 1, I, O and 0: it is read from a screen and typed.
_LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_PASSWORD_LENGTH = 20


class Secrets(Message):
    """Keys that all components share.

    jwt: signs tokens of users and tasks. session: signs cookies.
    fernet: encrypts connections and variables in the database.
    """

    jwt: str
    session: str
    fernet: str


def load_secrets(layout: Layout) -> Secrets:
    """The keys of this home; created if there are none."""
    kept = Secrets.of_file(layout.secrets)
    if kept is not None:
        return kept
    made = Secrets(
        jwt=secrets.token_urlsafe(64),
        session=secrets.token_urlsafe(64),
        fernet=base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    )
    write_private(layout.secrets, made.model_dump_json(indent=1))
    return made


def new_password(layout: Layout) -> str:
    """Give the user a new password. A running Airflow uses it immediately."""
    password = "".join(secrets.choice(_LETTERS) for _ in range(_PASSWORD_LENGTH))
    write_private(layout.passwords, json.dumps({USER: password}) + "\n")
    return password


def read_password(layout: Layout) -> str:
    """The user's password.

    Raises:
        InfrastructureError: when there is none, or the file is damaged.
    """
    try:
        password: str = json.loads(layout.passwords.read_text())[USER]
    except (OSError, ValueError, KeyError) as error:
        raise InfrastructureError(
            f"no password for {USER} in {layout.passwords} ({error}): "
            "make one with `forebay up --new-password`"
        ) from error
    return password
