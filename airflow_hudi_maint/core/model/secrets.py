"""What must not show in logs, plans and messages, told by the names of settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

_SECRET = frozenset(
    (
        *("auth", "authorization", "credential", "key", "passphrase", "passwd", "password", "pwd", "sas"),
        *("secret", "token"),
        # What is often written as one word.
        *("accesskey", "accountkey", "apikey", "authkey", "connectionstring", "privatekey", "secretkey"),
        *("sessiontoken", "sharedkey", "storagekey"),
    )
)
_KEYS_OF_DATA = frozenset(("foreign", "lock", "partition", "primary", "record", "sort"))
"""What stands before ``key`` where it names data: a zookeeper lock_key, a record key."""
_ABOUT_A_SECRET = frozenset(("class", "field", "fields", "provider", "type"))
"""What stands behind a secret's word where the value says how it is had: credentials.provider, auth.type."""
_SWITCHES = ("true", "false")


def secrets_in(options: Mapping[str, object]) -> Iterator[str]:
    """Yield the texts below names that sound like a credential's, also from lists and from objects inside.

    Of any other text that is a URL with a password, the password. A name is taken apart at dots, dashes, underscores
    and changes of case, and its words count as wholes.

    >>> list(secrets_in({"fs.s3a.secret.key": "a", "awsSessionToken": "b", "hoodie.table.recordkey.fields": "c"}))
    ['a', 'b']
    """
    for name, value in options.items():
        yield from _secrets_of(value, is_secret=_sounds_secret(name))


def redacted(text: str, *, secrets: Iterable[str]) -> str:
    """The text with three stars in the place of each secret, also as URLs spell it: WebHDFS has its token in them.

    >>> redacted("GET /t?delegation=a%2Fb", secrets=["a/b"])
    'GET /t?delegation=***'
    """
    for one in sorted(_spellings(secrets), key=len, reverse=True):
        text = text.replace(one, "***")
    return text


def shows_secret(error: BaseException, *, secrets: Iterable[str]) -> bool:
    """Whether a traceback of this error would show a secret, in its own text or in that of what led to it."""
    spellings = _spellings(secrets)
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        text = f"{one} {one!r}"
        if any(spelling in text for spelling in spellings):
            return True
        waiting += (one.__cause__, one.__context__)
    return False


def _spellings(secrets: Iterable[str]) -> set[str]:
    return {
        spelling
        for secret in secrets
        for spelling in (secret, quote(secret), quote(secret, safe=""), quote_plus(secret))
    }


def user_info(address: str) -> Iterator[str]:
    """Yield what stands before the host of a URL: user and password together and the password alone, or a lone token.

    >>> list(user_info("https://ci:s%40fe@repo.example/maven")), list(user_info("https://repo.example/@x"))
    (['ci:s%40fe', 's%40fe', 's@fe'], [])
    """
    found = re.match(r"[A-Za-z][\w+.-]*://([^/?#]*)@", address)
    if found is None or not found[1]:
        return
    password = found[1].rpartition(":")[2]
    yield from dict.fromkeys(text for text in (found[1], password, unquote(password)) if text)


def _secrets_of(value: object, *, is_secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from secrets_in(value)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _secrets_of(one, is_secret=is_secret)
    elif isinstance(value, str) and value and value.lower() not in _SWITCHES:
        yield from (value,) if is_secret else _passwords_in(value)


def _passwords_in(value: str) -> tuple[str, ...]:
    """The password of a URL, which the address of a server or of a proxy may have; a name alone is none."""
    whole, *passwords = tuple(user_info(value)) or ("",)
    return tuple(passwords) if ":" in whole else ()


def _sounds_secret(name: str) -> bool:
    words = _words(name)
    return any(_is_secret_word(words, at) for at in range(len(words)))


def _is_secret_word(words: list[str], at: int) -> bool:
    before = words[at - 1] if at else ""
    after = words[at + 1] if at + 1 < len(words) else ""
    if words[at] == "string":
        return before == "connection"
    if words[at] not in _SECRET or after in _ABOUT_A_SECRET:
        return False
    return words[at] != "key" or before not in _KEYS_OF_DATA


def _words(name: str) -> list[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", ".", name)
    words = [word.lower() for word in re.split(r"[._\-\s]+", apart) if word]
    return [word[:-1] if word.endswith("s") and word[:-1] in _SECRET else word for word in words]
