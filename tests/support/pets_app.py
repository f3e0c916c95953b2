"""A FastAPI app that people might have: a lifespan, uploads, validation, every kind of key."""

import base64
import contextlib
from typing import Annotated

from fastapi import (
    APIRouter,
    Body,
    Cookie,
    Depends,
    FastAPI,
    File,
    Form,
    HTTPException,
    Query,
    Request,
    Response,
    Security,
    UploadFile,
)
from fastapi.security import (
    APIKeyCookie,
    APIKeyHeader,
    APIKeyQuery,
    HTTPAuthorizationCredentials,
    HTTPBasic,
    HTTPBasicCredentials,
    HTTPBearer,
)
from pydantic import BaseModel, Field

header_key = APIKeyHeader(name="X-Api-Key", scheme_name="headerKey")
query_key = APIKeyQuery(name="api_key", scheme_name="queryKey")
cookie_key = APIKeyCookie(name="session", scheme_name="cookieKey")
bearer = HTTPBearer(scheme_name="bearer")
basic = HTTPBasic(scheme_name="basic")

SCHEMES = ("headerKey", "queryKey", "cookieKey", "bearer", "basic")


class Pet(BaseModel):
    """A pet as it is given."""

    name: str = Field(min_length=1, max_length=20)
    age: int = Field(ge=0)
    tags: list[str] = []


routes = APIRouter()


def check(request, given):
    if given != request.app.state.secret:
        raise HTTPException(403, "wrong key")
    return given


@routes.get("/pets")
def list_pets(
    request: Request,
    tag: Annotated[list[str] | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> list[Pet]:
    """List pets."""
    found = [pet for pet in request.app.state.pets.values() if set(tag or ()) <= set(pet.tags)]
    return found[:limit]


@routes.post("/pets", status_code=201)
def add_pet(pet: Pet, request: Request) -> dict[str, int]:
    """Add a pet."""
    if pet.name == "taken":
        raise HTTPException(409, "there is a pet of this name")
    number = max(request.app.state.pets) + 1
    request.app.state.pets[number] = pet
    return {"id": number}


@routes.get("/pets/{pet_id}")
def get_pet(pet_id: int, request: Request) -> Pet:
    """Get a pet."""
    if pet_id not in request.app.state.pets:
        raise HTTPException(404, f"there is no pet {pet_id}")
    return request.app.state.pets[pet_id]


@routes.delete("/pets/{pet_id}", status_code=204)
def drop_pet(pet_id: int, request: Request) -> None:
    """Drop a pet."""
    request.app.state.pets.pop(pet_id, None)


@routes.get("/opened")
def opened(request: Request) -> dict[str, str]:
    """Say who opened the shop."""
    return {"opened": request.state.opened}


@routes.get("/crash")
def crash() -> None:
    """Crash."""
    raise RuntimeError("the app's own fault")


@routes.post("/strict")
def strict(word: Annotated[str, Body(embed=True)], times: Annotated[int, Body()]) -> str:
    """Say a word some times; the document does not say that it must be odd."""
    if times % 2 == 0:
        from fastapi.exceptions import RequestValidationError

        problem = {"loc": ["body", "times"], "msg": "must be odd", "type": "odd"}
        raise RequestValidationError([problem])
    return word * times


@routes.post("/photos")
async def upload(
    photo: Annotated[UploadFile, File()],
    more: Annotated[list[UploadFile], File()],
    title: Annotated[str, Form()],
    year: Annotated[int, Form()] = 2000,
) -> dict[str, object]:
    """Upload photos."""
    contents = [await photo.read(), *[await one.read() for one in more]]
    return {
        "title": title,
        "year": year,
        "names": [bool(one.filename) for one in (photo, *more)],
        "contents": [base64.b64encode(content).decode() for content in contents],
    }


@routes.post("/form")
def form(name: Annotated[str, Form()], tags: Annotated[list[str], Form()]) -> dict[str, object]:
    """Fill a form in."""
    return {"name": name, "tags": tags}


@routes.get("/picture", response_class=Response)
def picture() -> Response:
    """Get a picture."""
    return Response(b"\x89PNG\x00\xff", media_type="image/png")


@routes.get("/taste")
def taste(flavour: Annotated[str | None, Cookie()] = None) -> str:
    """Tell the taste of a cookie."""
    return flavour or "none"


@routes.get("/locked/header")
def by_header(request: Request, key: Annotated[str, Security(header_key)]) -> str:
    """Need a key in a header."""
    return f"open: {bool(check(request, key))}"


@routes.get("/locked/query")
def by_query(request: Request, key: Annotated[str, Security(query_key)], page: int = 1) -> str:
    """Need a key in the query."""
    return f"open: {bool(check(request, key))}, page {page}"


@routes.get("/locked/cookie")
def by_cookie(
    request: Request,
    key: Annotated[str, Security(cookie_key)],
    flavour: Annotated[str, Cookie()] = "none",
) -> str:
    """Need a key in a cookie."""
    return f"open: {bool(check(request, key))}, {flavour}"


@routes.get("/locked/bearer")
def by_bearer(
    request: Request, key: Annotated[HTTPAuthorizationCredentials, Security(bearer)]
) -> str:
    """Need a bearer token."""
    return f"open: {bool(check(request, key.credentials))}"


@routes.get("/locked/basic")
def by_basic(request: Request, key: Annotated[HTTPBasicCredentials, Depends(basic)]) -> str:
    """Need a user and a password."""
    return f"open: {bool(check(request, key.password))}, {key.username}"


@routes.get("/locked/echo")
def echo(key: Annotated[str, Security(header_key)], request: Request) -> dict[str, object]:
    """Tell the request's headers, keys and all."""
    check(request, key)
    return {"headers": dict(request.headers), "url": str(request.url)}


def pets_app(events=None, secret="s3cret"):
    """The app. `events` hears of its beginning and its end; `secret` is what it takes for a key."""
    events = [] if events is None else events

    @contextlib.asynccontextmanager
    async def lifespan(app):
        events.append("startup")
        # Nothing of this is there without the lifespan.
        app.state.pets = {1: Pet(name="Rex", age=3)}
        yield {"opened": "by the lifespan"}
        events.append("shutdown")

    app = FastAPI(title="Pets", lifespan=lifespan)
    app.state.secret = secret
    app.include_router(routes)
    return app
