package site;

/** The answer to a request that can't be fulfilled. */
public record Failure(String error) {}
