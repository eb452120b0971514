package site;

/** There is no item with that id. */
public final class NotFoundException extends RuntimeException {
    public NotFoundException() {
        super("not found", null, false, false);
    }
}
