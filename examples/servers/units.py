"""A small MCP server over stdio: conversions between units."""

from typing import Literal

from mcp.server import MCPServer

server = MCPServer("units", log_level="WARNING")
METRES = {"metre": 1.0, "kilometre": 1000.0, "foot": 0.3048, "mile": 1609.344}

Length = Literal["metre", "kilometre", "foot", "mile"]


@server.tool()
def convert_length(value: float, source: Length, target: Length) -> float:
    """Convert a distance between metres, kilometres, feet and miles."""
    return round(value * METRES[source] / METRES[target], 3)


@server.tool()
def convert_temperature(value: float, target: Literal["celsius", "fahrenheit"]) -> float:
    """Convert degrees between Celsius and Fahrenheit."""
    return round(value * 9 / 5 + 32 if target == "fahrenheit" else (value - 32) * 5 / 9, 2)


if __name__ == "__main__":
    server.run()
