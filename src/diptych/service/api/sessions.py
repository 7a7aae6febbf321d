"""``/v1/session``: how the page signs in."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from diptych import __version__
from diptych.service.context import Context, ServiceContext
from diptych.service.schemas.session_document import SessionDocument
from diptych.service.schemas.sign_in import SignIn
from diptych.service.security.credentials import refuse_other_sites, unauthorised

router = APIRouter(prefix="/v1", tags=["session"])


@router.get("/session", summary="Whether the page may write", operation_id="getSession")
async def get_session(request: Request, response: Response, context: Context) -> SessionDocument:
    """Return what the page needs to know; on this machine, begin a session.

    Beyond this machine a session begins with POST and the token.
    """
    refuse_other_sites(request)
    credentials = context.credentials
    has_token = credentials.has_token(request)
    session = credentials.session(request)
    if session is None and not context.settings.public:
        session = credentials.sessions.new()
    if session is not None:
        _keep(session, request, response, context)
    return _document(context, session, has_token=has_token)


@router.post("/session", summary="Sign in with the token", operation_id="signIn")
async def sign_in(given: SignIn, request: Request, response: Response, context: Context) -> SessionDocument:
    """Begin a session of the page, as a cookie that scripts cannot read."""
    refuse_other_sites(request)
    credentials = context.credentials
    if not credentials.is_token(given.token):
        raise unauthorised("This is not the token of this service.")
    session = credentials.sessions.new()
    _keep(session, request, response, context)
    return _document(context, session, has_token=True)


@router.delete("/session", summary="Sign out", operation_id="signOut", status_code=204)
async def sign_out(request: Request, response: Response, context: Context) -> None:
    """Let the browser forget the session."""
    refuse_other_sites(request)
    response.delete_cookie(context.credentials.sessions.cookie_name, httponly=True, samesite="strict")


def _keep(session: str, request: Request, response: Response, context: ServiceContext) -> None:
    sessions = context.credentials.sessions
    response.set_cookie(
        sessions.cookie_name,
        sessions.cookie(session),
        max_age=sessions.lifetime_seconds,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def _document(context: ServiceContext, session: str | None, *, has_token: bool) -> SessionDocument:
    return SessionDocument(
        signed_in=has_token or session is not None,
        needs_token=context.settings.public,
        csrf=None if session is None else context.credentials.sessions.csrf(session),
        read_only=context.settings.read_only,
        version=__version__,
    )
