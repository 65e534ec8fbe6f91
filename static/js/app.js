// Loaded by every page. Each module takes up the elements it knows and leaves the rest.
import "./theme.js";
import "./copy.js";
import "./forms.js";
import "./tick.js";
import "./live.js";

document.documentElement.classList.add("js");
