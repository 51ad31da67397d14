"""A function of somebody else's that would fit our arguments better is not called, for it would run as us."""

from __future__ import annotations

from hakiri_dagster.manifest.load_spec import LoadMode
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import order
from tests.integration.destinations.postgres.test_every_mode import every_mode

BETTER = {
    "hashtextextended": ("text, int", "bigint", "1"),
    "concat_ws": ("text, text, text, text, text", "text", "''"),
    "format": ("text, text", "text", "''"),
    "nextval": ("text", "bigint", "900"),
    "unnest": ("text[]", "SETOF text", None),
    "pg_terminate_backend": ("int, int", "boolean", "true"),
}


@every_mode
def test_a_better_match_in_the_search_path_is_not_called(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.query("CREATE TABLE public.called (name text)")
    for name, (arguments, result, value) in BETTER.items():
        answer = "RETURN;" if value is None else f"RETURN {value};"
        shop.query(
            f"CREATE FUNCTION public.{name}({arguments}) RETURNS {result} LANGUAGE plpgsql AS "
            f"$$ BEGIN INSERT INTO public.called VALUES ('{name}'); {answer} END $$"
        )
    shop.publish([order(1)])
    shop.publish([order(1), order(2)])
    assert (shop.query("SELECT * FROM public.called"), shop.ids()) == ([], [1, 2])
