"""Access tokens of an OAuth authorization server, for which this one is the resource."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread
from mcp.server.auth.provider import AccessToken

if TYPE_CHECKING:
    import httpx2
    import jwt

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 10.0
"""How long the authorization server may take for an answer."""

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""Signatures that are taken: those that only the issuer can make."""


@dataclass(slots=True)
class SignedTokens:
    """Access tokens that are JWTs, checked with the issuer's published keys."""

    issuer: str
    resource: str
    jwks_url: str
    _keys: jwt.PyJWKClient | None = None

    async def verify_token(self, token: str) -> AccessToken | None:
        import jwt

        try:
            claims = await anyio.to_thread.run_sync(self._claims, token)
        except jwt.PyJWKClientConnectionError as error:
            logger.warning("the keys at %s can't be had: %s", self.jwks_url, error)
            return None
        except jwt.PyJWTError as error:
            logger.info("an access token is refused: %s", error)
            return None
        return _access(token, claims, self.issuer, self.resource)

    def _claims(self, token: str) -> Mapping[str, Any]:
        import jwt

        if self._keys is None:
            self._keys = jwt.PyJWKClient(self.jwks_url, timeout=ANSWER_SECONDS)
        return jwt.decode(
            token,
            self._keys.get_signing_key_from_jwt(token),
            algorithms=list(ALGORITHMS),
            audience=_spellings(self.resource),
            issuer=_spellings(self.issuer),
            options={"require": ["exp", "aud", "iss"]},
        )


@dataclass(slots=True)
class IntrospectedTokens:
    """Access tokens of any form, which the issuer is asked about (RFC 7662)."""

    issuer: str
    resource: str
    url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    transport: httpx2.AsyncBaseTransport | None = None
    """What carries the question, for tests and proxies."""

    async def verify_token(self, token: str) -> AccessToken | None:
        import httpx2

        known = httpx2.BasicAuth(self.client_id, self.client_secret) if self.client_id else None
        try:
            async with httpx2.AsyncClient(
                timeout=ANSWER_SECONDS, auth=known, transport=self.transport
            ) as client:
                answer = await client.post(self.url, data={"token": token})
            answer.raise_for_status()
            told: Any = answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            logger.warning("%s can't say what a token is worth: %s", self.url, error)
            return None
        if not isinstance(told, dict):
            return None
        claims = cast("dict[str, Any]", told)
        is_ours = _is_for(claims.get("aud"), self.resource)
        is_theirs = claims.get("iss", self.issuer) in _spellings(self.issuer)
        if claims.get("active") is not True or not is_ours or not is_theirs:
            return None
        return _access(token, claims, self.issuer, self.resource)


def _access(
    token: str, claims: Mapping[str, Any], issuer: str, resource: str
) -> AccessToken | None:
    """The token as the SDK takes it; None where it does not say whose it is."""
    client, subject = claims.get("client_id") or claims.get("azp"), claims.get("sub")
    if not isinstance(subject or client, str):
        return None
    # A client of its own right must not be taken for a person of the same name.
    principal = f"{issuer}#{subject}" if subject else f"{issuer}#client:{client}"
    scopes: Any = claims.get("scope") or claims.get("scp") or ""
    named = cast("list[object]", scopes) if isinstance(scopes, list) else str(scopes).split()
    expires = claims.get("exp")
    return AccessToken(
        token=token,
        client_id=str(client or subject),
        subject=principal,
        scopes=[str(each) for each in named],
        expires_at=int(expires) if isinstance(expires, int | float) else None,
        resource=resource,
        claims={"iss": issuer},
    )


def _spellings(url: str) -> list[str]:
    """A URL with and without its last slash: both are in use for the same thing."""
    return [url.rstrip("/"), url.rstrip("/") + "/"]


def _is_for(audience: object, resource: str) -> bool:
    named = cast("list[object]", audience) if isinstance(audience, list) else [audience]
    return any(each in _spellings(resource) for each in named)
