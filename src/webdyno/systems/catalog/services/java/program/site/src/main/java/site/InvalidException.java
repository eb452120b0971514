package site;

/** A client sent what isn't an item. */
public final class InvalidException extends RuntimeException {
    public InvalidException(String reason) {
        super(reason, null, false, false);
    }
}
