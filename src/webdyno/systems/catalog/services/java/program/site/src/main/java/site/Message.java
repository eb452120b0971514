package site;

/** The answer of the site "json". */
public record Message(String message) {}
