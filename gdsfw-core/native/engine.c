int gdsfw_placeholder;
